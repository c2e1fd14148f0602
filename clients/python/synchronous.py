"""Makes src/jobweaver/parts.py of async_parts.py: the same methods without async."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent / "src" / "jobweaver" / "async_parts.py"
HEAD = '"""The parts of Client. Made of async_parts.py by `make generate-clients`. Do not edit."""\n'


def synchronous(text: str) -> str:
    text = HEAD + text[text.index('"""\n', 3) + 4 :]
    return re.sub(r"\bAsync(?=[A-Z])|\b(?:async|await) ", "", text)


if __name__ == "__main__":
    SOURCE.with_name("parts.py").write_text(synchronous(SOURCE.read_text()))
