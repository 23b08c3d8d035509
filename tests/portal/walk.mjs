// Walks through the portal in a real browser.
//
//   node walk.mjs SETTINGS.json
//
// The settings are written by run.py, which started the server and made what the pages show.

import { readFileSync } from 'node:fs';
import { Browser, Report } from './browser.mjs';
import { budget } from './budget.mjs';
import { changes } from './changes.mjs';
import { entrance } from './entrance.mjs';
import { crowd } from './crowd.mjs';
import { ledger } from './floors.mjs';
import { forms } from './forms.mjs';
import { frame } from './frame.mjs';
import { golden } from './golden.mjs';
import { hostile } from './hostile.mjs';
import { large } from './large.mjs';
import { layout } from './layout.mjs';
import { long } from './long.mjs';
import { machines } from './machines.mjs';
import { pages } from './pages.mjs';
import { refusals } from './refusals.mjs';
import { runs } from './runs.mjs';
import { using } from './using.mjs';

const settings = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const report = new Report();
const parts = { entrance, pages, frame, using, forms, layout, crowd, long, hostile, refusals, budget, changes, runs, large, machines, golden };
const browser = await Browser.start(settings);
try {
    for (const [name, part] of Object.entries(parts)) {
        if (settings.only.length > 0 && !settings.only.includes(name)) continue;
        console.log(name);
        await part(browser, settings, report);
    }
    await ledger.close(browser, settings);
} finally {
    await browser.close();
}
if (report.failed > 0) {
    console.log(`${report.failed} failed; screenshots are in ${settings.screens}`);
    process.exit(1);
}
