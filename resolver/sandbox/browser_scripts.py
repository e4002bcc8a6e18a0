"""The scripts that are run in a page, always in an isolated world separate from the page's scripts.

The page can neither see nor replace anything there, and the scripts find the browser's own
prototypes. In functions, `this` is the element. If a function checks an element, an empty string
means that there is no problem.
"""

from typing import Final

WORLD: Final = "resolver"
"""Name of the isolated world."""

ANSWERED: Final = """new Promise(done => {
  // A page in the background draws no frames.
  const late = setTimeout(done, 100);
  requestAnimationFrame(() => setTimeout(() => { clearTimeout(late); done(); }, 0));
})"""
"""Resolves when the page has handled the last input and drawn the result."""

FACTS: Final = """({
  title: document.title.slice(0, 1000),
  count: document.getElementsByTagName('*').length,
  left: Math.round(scrollX), top: Math.round(scrollY),
  height: (document.scrollingElement || document.documentElement || {}).scrollHeight || 0,
  view: innerHeight, width: innerWidth,
})"""
"""Gives the title, number of elements, scroll position and sizes of the page."""

VISIBLE_TEXT: Final = """(document.body ? document.body.innerText : '').slice(0, %d)"""
"""Gives the visible text of the page; %d is the maximum number of characters."""

IN_VIEW: Final = """(() => {
  const kinds = 'a[href],button,input,select,textarea,summary,[role],[tabindex],[onclick]';
  const facts = [];
  globalThis.inView = [];
  for (const e of document.querySelectorAll(kinds)) {
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height || box.bottom <= 0 || box.top >= innerHeight) continue;
    const text = e.getAttribute('aria-label') || e.innerText || e.placeholder || e.name || '';
    const kind = e.localName === 'input' ? `input ${e.type}` : e.localName;
    facts.push({
      kind: e.getAttribute('role') || kind, text: String(text).slice(0, 300),
      box: [box.x, box.y, box.width, box.height],
    });
    if (inView.push(e) === %d) break;
  }
  return facts;
})()"""
"""Gives kind, text and box of the usable elements in the window; %d is their maximum number."""

ELEMENTS_IN_VIEW: Final = "inView"
"""Gives the elements that IN_VIEW has found, in the same order."""

COVERED_BY: Final = """function(hit) {
  const up = n => n.assignedSlot || n.parentNode || n.host;
  for (let n = hit; n; n = up(n)) if (n === this) return '';
  for (let n = this; n; n = up(n)) if (n === hit) return '';
  const label = hit.closest && hit.closest('label');
  if (label && label.control === this) return '';
  const of = hit.nodeType === 1 ? hit : hit.parentElement;
  return of ? `<${of.localName}${of.id ? ` id="${of.id}"` : ''}>` : 'something';
}"""
"""Returns a description of `hit` if it covers the element, '' if a click on it reaches it."""

USABLE: Final = """function() {
  if (this.localName === 'option') return 'is an option: use select_option on its list';
  const form = this.closest && this.closest('fieldset:disabled');
  if (this.disabled || form || (this.ariaDisabled === 'true')) return 'is disabled';
  return '';
}"""
"""Returns why an element can't be clicked."""

TAKES_TEXT: Final = """function(value) {
  const kind = (this.type || '').toLowerCase(), tag = this.localName;
  if (this.disabled) return 'is disabled';
  if (this.readOnly) return 'is read-only';
  if (tag === 'select') return 'is a list: use select_option';
  if (tag === 'input' || tag === 'textarea') {
    if (kind === 'checkbox' || kind === 'radio') return 'takes no text: use check or click';
    if (kind === 'file') return 'takes a file: use upload_file';
    if (['button', 'submit', 'reset', 'image', 'hidden'].includes(kind)) return 'takes no text';
    this.focus();
    const parts = ['color', 'date', 'datetime-local', 'month', 'range', 'time', 'week'];
    if (parts.includes(kind)) {
      const before = this.value;
      this.value = value;
      if (this.value !== value && Number(this.value) !== Number(value)) {
        this.value = before;
        const forms = {date: '2026-01-31', time: '13:45', month: '2026-01', week: '2026-W05',
          'datetime-local': '2026-01-31T13:45', color: '#00ff00', range: 'a number in its range'};
        return `takes a ${kind} like ${forms[kind]}`;
      }
      for (const event of ['input', 'change'])
        this.dispatchEvent(new Event(event, {bubbles: true, composed: true}));
      return 'set';
    }
    this.select();
    return '';
  }
  if (this.isContentEditable) {
    this.focus();
    const range = document.createRange();
    range.selectNodeContents(this);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return '';
  }
  return 'takes no text';
}"""
"""Focuses an element and selects its content so that text can be typed.

Returns 'set' if the value was set already (date, range and so on), or why it takes no text.
"""

CHOOSE: Final = """function(wanted) {
  if (this.localName !== 'select')
    return 'is not a <select>: click it, and then what it offers';
  if (this.disabled) return 'is disabled';
  const all = [...this.options], text = o => o.label.trim();
  const chosen = [];
  for (const want of wanted) {
    const option = all.find(o => o.value === want) || all.find(o => text(o) === want.trim());
    if (!option) {
      const some = all.slice(0, 30).map(o => JSON.stringify(text(o).slice(0, 80))).join(', ');
      return `has no option ${JSON.stringify(want.slice(0, 80))}; it has ${some || 'none'}`;
    }
    if (option.disabled) return `has ${JSON.stringify(want)}, but disabled`;
    chosen.push(option);
  }
  if (!this.multiple && chosen.length !== 1) return 'takes exactly one option';
  this.focus();
  for (const option of all) option.selected = chosen.includes(option);
  for (const event of ['input', 'change'])
    this.dispatchEvent(new Event(event, {bubbles: true, composed: true}));
  return '';
}"""
"""Selects the options of a list by value or label, or returns why it can't."""

CHECKED: Final = """function() {
  if (this.localName === 'input' && ['checkbox', 'radio'].includes(this.type))
    return String(this.checked);
  return this.getAttribute('aria-checked') || '';
}"""
"""Returns 'true' or 'false' for a checkbox or radio button, else the value of aria-checked."""

IS_FILE_INPUT: Final = """function() {
  return this.localName === 'input' && this.type === 'file'
    ? (this.multiple ? 'many' : 'one') : '';
}"""
"""Returns 'many' or 'one' for a file input, '' for other elements."""

DRAG_BEGINS: Final = """(() => {
  globalThis.dragged = false;
  addEventListener('dragstart', event => {
    globalThis.dragged = !event.defaultPrevented;
  }, {once: true});
})()"""
"""Records whether the page begins an HTML drag."""

DRAG_BEGAN: Final = "Boolean(globalThis.dragged)"
"""Gives what DRAG_BEGINS has recorded."""

DRAW_MARKS: Final = """((boxes) => {
  const host = document.createElement('div');
  host.style.cssText = 'all:initial;position:fixed;inset:0;z-index:2147483647;pointer-events:none';
  const inside = host.attachShadow({mode: 'closed'});
  for (const [bid, x, y, width, height] of boxes) {
    const box = document.createElement('div');
    box.style.cssText = `position:fixed;left:${x}px;top:${y}px;width:${width}px;` +
      `height:${height}px;box-sizing:border-box;border:1px solid #d00`;
    const word = document.createElement('span');
    word.textContent = bid;
    word.style.cssText = 'position:absolute;left:0;top:0;background:#d00;color:#fff;' +
      'font:bold 10px/12px monospace;padding:0 2px';
    box.append(word);
    inside.append(box);
  }
  document.documentElement.append(host);
  globalThis.marks = host;
})(%s)"""
"""Draws a labeled box around each element; %s is a JSON array of [bid, x, y, width, height]."""

REMOVE_MARKS: Final = "globalThis.marks && globalThis.marks.remove()"
"""Removes what DRAW_MARKS has drawn."""
