"""The film of the golden path in the documentation: the pictures that the scenario `golden` took, in its order, with its sentences."""

import json
import re
import shutil

PAGE = "how-to/portal.md"
BEGIN, END = "<!-- the film: make screens writes it -->", "<!-- the film ends -->"
COLUMNS = 3


def show(screens, docs):
    frames = json.loads((screens / "film.json").read_text())
    place = docs / "screens"
    place.mkdir(exist_ok=True)
    for old in place.glob("golden-*.png"):
        old.unlink()
    for frame in frames:
        shutil.copy(screens / frame["file"], place)
    page = docs / PAGE
    text = page.read_text()
    written, count = re.subn(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{table(frames)}\n{END}", text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{page} has no place for the film: {BEGIN}")
    page.write_text(written)
    print(f"{len(frames)} pictures are in {place} and on {page}")


def table(frames):
    cells = [f"![{frame['caption'].split(':')[0]}](../screens/{frame['file']}) {number}. {frame['caption']}" for number, frame in enumerate(frames, 1)]
    cells += [""] * (-len(cells) % COLUMNS)
    rows = [cells[at:at + COLUMNS] for at in range(0, len(cells), COLUMNS)]
    return "\n".join([f"|{' |' * COLUMNS}", f"|{'---|' * COLUMNS}", *(f"| {' | '.join(row)} |" for row in rows)])
