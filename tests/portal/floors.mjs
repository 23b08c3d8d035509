// What pages cost beside what they may cost: one ledger for all parts that measure, and what becomes of it in the end.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const MANY = 1_000;
export const ROWS = 10_000;

/** What is measured, and at most how much of it. Sizes are the same on every machine: what is `insisted` on fails the test. Times are not. */
const FLOORS = {
    script: { what: 'compressed script of the first page', unit: 'KB', most: 300, isInsisted: true },
    interactive: { what: 'first page interactive', unit: 'ms', most: 1_000 },
    applications: { what: `page with ${MANY} Applications`, unit: 'ms', most: 1_000 },
    memory: { what: `memory of the tab's process with ${MANY} Applications`, unit: 'MB', most: 150 },
    heap: { what: `heap with ${MANY} Applications`, unit: 'MB', most: 150, isInsisted: true },
    elements: { what: `elements of the page with ${MANY} Applications`, unit: '', most: 10_000, isInsisted: true },
    paint: { what: 'from a watch event to the screen', unit: 'ms', most: 100 },
    // At 60 pictures a second there is one every 16.7 ms.
    frame: { what: `a frame while ${ROWS} rows are scrolled`, unit: 'ms', most: 17 },
    slowFrame: { what: `the slowest of twenty frames while ${ROWS} rows are scrolled`, unit: 'ms', most: 34 },
};

export const median = values => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

class Ledger {
    rows = [];

    /** Writes a measurement down; more than may be, where that is insisted on, is an error. */
    note(key, value, how = '') {
        const { what, unit, most, isInsisted } = FLOORS[key];
        const isHeld = value <= most;
        this.rows.push({ what, value, unit, most, isHeld, how });
        if (!isHeld && isInsisted) throw new Error(`${what}: ${value} ${unit}, more than ${most}`);
        return `${value} ${unit} of at most ${most}${isHeld ? '' : ' (missed)'}`;
    }

    table() {
        const cells = this.rows.map(({ what, value, unit, most, isHeld, how }) => [what, `${value} ${unit}`.trim(), `${most} ${unit}`.trim(), isHeld ? 'yes' : 'NO', how]);
        const rows = [['what', 'measured', 'at most', 'held', 'how'], ...cells];
        const widths = rows[0].map((_, column) => Math.max(3, ...rows.map(row => row[column].length)));
        const line = row => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`;
        return [line(rows[0]), `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`, ...rows.slice(1).map(line)].join('\n');
    }

    /** Prints it, and keeps it for the report. */
    async close(browser, { screens }) {
        if (this.rows.length === 0) return;
        console.log(this.table().replace(/^/gm, '  '));
        await writeFile(join(screens, 'floors.json'), `${JSON.stringify({ browser: browser.chromium.version(), rows: this.rows }, undefined, 1)}\n`);
    }
}

export const ledger = new Ledger();
