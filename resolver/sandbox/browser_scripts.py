"""What the browser runs in a page, always in a world of its own beside the page's scripts.

There the page can neither see nor replace anything: the functions find the browser's own
prototypes. `this` is the element, and an empty string as result means that all is well.
"""

from typing import Final

WORLD: Final = "resolver"

ANSWERED: Final = """new Promise(done => {
  // A page in the background draws no frames.
  const late = setTimeout(done, 100);
  requestAnimationFrame(() => setTimeout(() => { clearTimeout(late); done(); }, 0));
})"""
"""Resolves when the page has done what the last input asked of it, and drawn it."""

FACTS: Final = """({
  title: document.title.slice(0, 1000),
  count: document.getElementsByTagName('*').length,
  left: Math.round(scrollX), top: Math.round(scrollY),
  height: (document.scrollingElement || document.documentElement || {}).scrollHeight || 0,
  view: innerHeight, width: innerWidth,
})"""

WORDS: Final = """(document.body ? document.body.innerText : '').slice(0, %d)"""

IN_VIEW: Final = """(() => {
  const kinds = 'a[href],button,input,select,textarea,summary,[role],[tabindex],[onclick]';
  const found = [];
  for (const e of document.querySelectorAll(kinds)) {
    const box = e.getBoundingClientRect();
    if (box.width && box.height && box.bottom > 0 && box.top < innerHeight) found.push(e);
    if (found.length === %d) break;
  }
  return found;
})()"""

LABEL: Final = """function() {
  const text = this.getAttribute('aria-label') || this.innerText || this.placeholder || this.name;
  const kind = this.localName === 'input' ? ` ${this.type}` : '';
  return [this.getAttribute('role') || this.localName + kind, (text || '').slice(0, 300)];
}"""

COVERED_BY: Final = """function(hit) {
  const up = n => n.assignedSlot || n.parentNode || n.host;
  for (let n = hit; n; n = up(n)) if (n === this) return '';
  for (let n = this; n; n = up(n)) if (n === hit) return '';
  const label = hit.closest && hit.closest('label');
  if (label && label.control === this) return '';
  const of = hit.nodeType === 1 ? hit : hit.parentElement;
  return of ? `<${of.localName}${of.id ? ` id="${of.id}"` : ''}>` : 'something';
}"""

USABLE: Final = """function() {
  if (this.localName === 'option') return 'is an option: use select_option on its list';
  const form = this.closest && this.closest('fieldset:disabled');
  if (this.disabled || form || (this.ariaDisabled === 'true')) return 'is disabled';
  return '';
}"""

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

CHECKED: Final = """function() {
  if (this.localName === 'input' && ['checkbox', 'radio'].includes(this.type))
    return String(this.checked);
  return this.getAttribute('aria-checked') || '';
}"""

IS_FILE_INPUT: Final = """function() {
  return this.localName === 'input' && this.type === 'file'
    ? (this.multiple ? 'many' : 'one') : '';
}"""

DRAG_BEGINS: Final = """(() => {
  globalThis.dragged = false;
  addEventListener('dragstart', event => {
    globalThis.dragged = !event.defaultPrevented;
  }, {once: true});
})()"""

DRAG_BEGAN: Final = "Boolean(globalThis.dragged)"

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

REMOVE_MARKS: Final = "globalThis.marks && globalThis.marks.remove()"
