// The golden path in pictures: one frame after the other as somebody sees it, each with a sentence. film.py puts them into the documentation.

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export class Film {
    frames = [];

    constructor(person) {
        this.person = person;
        this.path = join(person.settings.screens, 'film.json');
    }

    async frame(name, caption) {
        const file = `golden-${name}`;
        await this.person.shot(file);
        this.frames.push({ file: `${file}.png`, caption });
    }

    /** Keeps the order; of a path that was not gone to its end there is no film. */
    async end(isWhole) {
        if (isWhole) await writeFile(this.path, `${JSON.stringify(this.frames, undefined, 1)}\n`);
        else await rm(this.path, { force: true });
    }
}
