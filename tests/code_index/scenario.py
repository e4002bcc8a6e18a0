"""Small repositories in each language, and indexes of given files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from resolver.code_index.codebase import CodeBase
from resolver.code_index.index import CodeIndex, IndexBounds
from resolver.code_index.languages import language_of
from resolver.code_index.source import read_source
from resolver.config.templates import render
from resolver.git.git import HostGit
from tests.parts.runs import git, make_checkout

REPOSITORIES: dict[str, dict[str, str]] = {
    "python": {
        "src/shop/cart.py": "from .price import total\n\n\nclass Cart(Base):\n"
        "    def pay(self):\n        return self.check(total(1))\n\n"
        "    def check(self, x):\n        return x\n\n\nclass Base:\n    pass\n",
        "src/shop/price.py": "def total(x):\n    return x\n",
    },
    "javascript": {
        "cart.js": "import { total } from './price.js';\nclass Base {}\n"
        "class Cart extends Base {\n  pay() { return this.check(total(1)); }\n"
        "  check(x) { return x; }\n}\n",
        "price.js": "export const total = (x) => x;\n",
    },
    "typescript": {
        "cart.ts": "import { total } from './price';\nclass Base {}\n"
        "export class Cart extends Base {\n  pay(): number { return this.check(total(1)); }\n"
        "  check(x: number) { return x; }\n}\n",
        "price.ts": "export function total(x: number) { return x; }\n",
    },
    "go": {
        "cart/cart.go": 'package cart\n\nimport "example.com/shop/price"\n\ntype Cart struct{}\n\n'
        "func (c *Cart) Pay() int { return price.Total(1) }\n",
        "price/price.go": "package price\n\nfunc Total(x int) int { return x }\n",
    },
    "java": {
        "src/shop/Cart.java": "package shop;\nimport money.Price;\nclass Cart extends Base {\n"
        "  int pay() { return check(Price.total(1)); }\n  int check(int x) { return x; }\n}\n"
        "class Base {}\n",
        "src/money/Price.java": "package money;\npublic class Price {\n"
        "  public static int total(int x) { return x; }\n}\n",
    },
    "rust": {
        "src/main.rs": "mod price;\nuse crate::price::total;\nstruct Cart;\n"
        "impl Cart { fn pay(&self) -> i32 { self.check(total(1)) }\n"
        "  fn check(&self, x: i32) -> i32 { x } }\n",
        "src/price.rs": "pub fn total(x: i32) -> i32 { x }\n",
    },
    "c++": {
        "cart.cpp": '#include "price.h"\nclass Base {};\nclass Cart : public Base {\n'
        "  int pay() { return check(total(1)); }\n  int check(int x) { return x; }\n};\n",
        "price.h": "inline int total(int x) { return x; }\n",
    },
    "c": {
        "cart.c": '#include "price.h"\nint pay(void) { return total(1); }\n',
        "price.h": "static int total(int x) { return x; }\n",
    },
    "ruby": {
        "lib/cart.rb": "require_relative 'price'\nclass Base\nend\nclass Cart < Base\n"
        "  def pay\n    self.check(total(1))\n  end\n  def check(x)\n    x\n  end\nend\n",
        "lib/price.rb": "def total(x)\n  x\nend\n",
    },
}


class Answers:
    """The answers of an index as an agent reads them."""

    def __init__(self, code: CodeBase) -> None:
        self._code = code

    def search(self, terms: Sequence[str], below: str = "") -> str:
        found = self._code.search(terms, below)
        return render("agent/code_found.md.j2", found=found, path=below).strip()

    def explore(
        self, starts: Sequence[str], directions: Sequence[str], depth: int, kinds: Sequence[str]
    ) -> str:
        walks = self._code.explore(starts, directions, depth, kinds)
        return render("agent/code_walks.md.j2", walks=walks).strip()


def codebase_of(files: Mapping[str, str | bytes]) -> Answers:
    """Return the answers of an index of these files, parsed in this process."""
    texts = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    languages = {path: language for path in texts if (language := language_of(path))}
    sources = {path: read_source(texts[path], language) for path, language in languages.items()}
    return Answers(CodeBase(texts, sources))


def commit_of(folder: Path, files: Mapping[str, str]) -> tuple[HostGit, str]:
    """Return a bare clone of a repository with these files, and its commit."""
    return clone_of(folder, make_checkout(folder / "checkout", files))


def clone_of(folder: Path, checkout: Path) -> tuple[HostGit, str]:
    """A bare clone of a checkout, and its newest commit."""
    bare = folder / "bare.git"
    git(checkout, "clone", "--quiet", "--bare", ".", str(bare))
    return HostGit(git_dir=bare), git(checkout, "rev-parse", "HEAD")


def index_of(
    folder: Path, files: Mapping[str, str], bounds: IndexBounds | None = None
) -> CodeIndex:
    """Return the index of a real commit of these files, not built yet."""
    return CodeIndex(*commit_of(folder, files), bounds)
