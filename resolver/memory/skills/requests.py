"""Task skills: parses and checks the inputs of a command such as `/release-notes since=v1.2`, and
inserts them into the skill's text."""

import re
from collections.abc import Mapping

from resolver.config.templates import render
from resolver.errors import Refused
from resolver.memory.skills.skill import Skill, SkillInput

MAX_VALUE = 2_000

_GIVEN = re.compile(r"""(?<!\S)([A-Za-z_][\w-]*)=("[^"]*"|'[^']*'|\S*)""")
_PLACE = re.compile(r"\$\{\s*([A-Za-z_][\w-]*)\s*\}|\{\{\s*([A-Za-z_][\w-]*)\s*\}\}")
_BOOLEANS = {
    "true": "true",
    "yes": "true",
    "1": "true",
    "false": "false",
    "no": "false",
    "0": "false",
}


def fill_task_skill(skill: Skill, words: str) -> str:
    """Return the skill's text with `${name}` and `{{ name }}` replaced by the person's values.

    words: the text after the skill's name. `name=value` sets an input, quotes allow spaces in a
        value; other text is ignored here.

    Values are inserted literally: a placeholder inside a value is not replaced. Raises Refused with
    the problems and a list of all inputs if one is missing, unknown or invalid.
    """
    values = _values(skill, words)

    def put_in(place: re.Match[str]) -> str:
        return values.get(place[1] or place[2], place[0])

    return _PLACE.sub(put_in, skill.body)


def _values(skill: Skill, words: str) -> Mapping[str, str]:
    known = {one.name: one for one in skill.inputs}
    if not known:
        return {}
    given = {found[1]: _unquoted(found[2]) for found in _GIVEN.finditer(words)}
    problems = [f"there is no input `{name}`" for name in given if name not in known]
    values: dict[str, str] = {}
    for name, one in known.items():
        if name in given:
            problem = _problem(one, given[name])
            problems += [problem] if problem else []
            values[name] = _as_typed(one, given[name])
        elif one.is_required:
            problems.append(f"`{name}` is missing")
        else:
            values[name] = one.default or ""
    if problems:
        what = render("run/skill_inputs.md.j2", skill=skill, problems=problems).strip()
        raise Refused(what, f"Ask again with its inputs: `/{skill.name} {_example(skill)}`.")
    return values


def _problem(one: SkillInput, value: str) -> str:
    """Return what is wrong with a value, without quoting it, since it may contain anything."""
    if len(value) > MAX_VALUE:
        return f"`{one.name}` has more than {MAX_VALUE} characters"
    if not value and one.is_required:
        return f"`{one.name}` is empty"
    if one.choices and value not in one.choices:
        return f"`{one.name}` is one of {', '.join(one.choices)}"
    number = r"[-+]?\d{1,18}" + ("" if one.type == "integer" else r"(\.\d{1,18})?")
    if one.type in {"integer", "number"} and not re.fullmatch(number, value):
        return f"`{one.name}` is {'an integer' if one.type == 'integer' else 'a number'}"
    if one.type == "boolean" and value.lower() not in _BOOLEANS:
        return f"`{one.name}` is true or false"
    return ""


def _as_typed(one: SkillInput, value: str) -> str:
    return _BOOLEANS.get(value.lower(), value) if one.type == "boolean" else value


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return " ".join((value[1:-1] if quoted else value).split())


def _example(skill: Skill) -> str:
    required = [one for one in skill.inputs if one.is_required] or list(skill.inputs[:1])
    return " ".join(f"{one.name}={one.choices[0] if one.choices else '...'}" for one in required)
