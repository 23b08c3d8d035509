// What pages cost, beside what they may cost, as a table. Sizes are the same on every machine and are insisted on; times are not.

import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const MANY = 1_000;
const TURNS = 5;

/** What is measured, and at most how much of it. `insisted` fails the test. */
const FLOORS = {
    script: { what: 'compressed script of the first page', unit: 'KB', most: 300, insisted: true },
    interactive: { what: 'first page interactive', unit: 'ms', most: 1_000 },
    applications: { what: `page with ${MANY} Applications`, unit: 'ms', most: 1_000 },
    heap: { what: `heap with ${MANY} Applications`, unit: 'MB', most: 150, insisted: true },
    memory: { what: `memory of the tab's process with ${MANY} Applications`, unit: 'MB', most: 150 },
    elements: { what: `elements of that page`, unit: '', most: 10_000, insisted: true },
    paint: { what: 'from a watch event to the screen', unit: 'ms', most: 100 },
};

const median = values => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

class Budget {
    rows = [];

    /** Writes a measurement down; more than may be, where that is insisted on, is an error. */
    note(key, value, remark = '') {
        const { what, unit, most, insisted } = FLOORS[key];
        const holds = value <= most;
        this.rows.push([what, `${value} ${unit}`.trim(), `${most} ${unit}`.trim(), holds ? 'holds' : insisted ? 'BROKEN' : 'missed', remark]);
        if (!holds && insisted) throw new Error(`${what}: ${value} ${unit}, more than ${most}`);
        return `${value} ${unit} of at most ${most}${holds ? '' : ' (missed)'}`;
    }

    table() {
        const rows = [['what', 'measured', 'at most', '', 'how'], ...this.rows];
        const widths = rows[0].map((_, column) => Math.max(3, ...rows.map(row => row[column].length)));
        const line = row => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`;
        return [line(rows[0]), `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`, ...rows.slice(1).map(line)].join('\n');
    }
}

export async function budget(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    const costs = new Budget();
    await report.step(FLOORS.script.what, () => first(browser, person, settings, costs));
    await report.step(FLOORS.applications.what, () => many(browser, person, settings, costs));
    await report.step(FLOORS.paint.what, () => painted(person, costs));
    await person.context.close();
    console.log(costs.table().replace(/^/gm, '  '));
    await writeFile(join(settings.screens, 'budget.md'), `${costs.table()}\n`);
}

/** The first page in a browser that has nothing of it yet; it can be used when the navigation is there and the page behind it has its heading. */
async function first(browser, person, settings, costs) {
    const state = await person.context.storageState();
    const times = [];
    let [bytes, files] = [0, 0];
    for (let turn = 0; turn < TURNS; turn += 1) {
        const fresh = await browser.person({ storageState: state });
        const session = await fresh.context.newCDPSession(fresh.page);
        await session.send('Network.enable');
        const scripts = new Map();
        bytes = 0;
        session.on('Network.responseReceived', event => { if (event.type === 'Script') scripts.set(event.requestId, event.response.url); });
        session.on('Network.loadingFinished', event => { if (scripts.has(event.requestId)) bytes += event.encodedDataLength; });
        // Asked in every frame from within: a driver that looks now and then would be measured, too.
        await fresh.context.addInitScript(() => {
            const look = () => {
                if (document.querySelector('nav a') && document.querySelector('main h1')) globalThis.fairwayInteractive = performance.now();
                else requestAnimationFrame(look);
            };
            requestAnimationFrame(look);
        });
        await fresh.open('/home', 'Home');
        await fresh.page.waitForFunction(() => globalThis.fairwayInteractive);
        times.push(Math.round(await fresh.page.evaluate(() => globalThis.fairwayInteractive)));
        await fresh.page.waitForTimeout(300);
        // Files out of a directory are not compressed on their way.
        if (settings.dist) bytes = [...scripts.values()].reduce((sum, url) => sum + gzipSync(readFileSync(join(settings.dist, new URL(url).pathname))).length, 0);
        files = scripts.size;
        await fresh.context.close();
    }
    costs.note('interactive', median(times), `median of ${TURNS} fresh browsers, ${Math.min(...times)} to ${Math.max(...times)} ms`);
    return costs.note('script', Math.round(bytes / 1024), `${files} files`);
}

async function many(browser, person, settings, costs) {
    const times = [];
    for (let turn = 0; turn < TURNS; turn += 1) {
        const begun = Date.now();
        await person.open(`/w/${settings.many}/applications`);
        await person.see(person.page.getByText('many-0000'));
        times.push(Date.now() - begun);
    }
    await person.page.waitForTimeout(1_000);
    const session = await person.context.newCDPSession(person.page);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    const nodes = await person.page.evaluate(() => document.querySelectorAll('*').length);
    const memory = await renderer(browser);
    if (memory) costs.note('memory', memory, 'RssAnon of the largest renderer');
    costs.note('applications', median(times), `median of ${TURNS}, ${Math.min(...times)} to ${Math.max(...times)} ms, from the address to the first tile`);
    const heap = costs.note('heap', Math.round(usedSize / 1048576), 'after a collection');
    return `${costs.note('elements', nodes)} elements; heap ${heap}`;
}

/** Megabytes of its own that the largest process with pages has; other memory is shared with the rest of the browser. */
async function renderer(browser) {
    const session = await browser.chromium.newBrowserCDPSession();
    const { processInfo } = await session.send('SystemInfo.getProcessInfo');
    await session.detach();
    const sizes = processInfo.filter(it => it.type === 'renderer').map(it => {
        try {
            return Number(/RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${it.id}/status`, 'utf8'))?.[1] ?? 0);
        } catch {
            // It has ended meanwhile, or this is no Linux.
            return 0;
        }
    });
    return Math.round(Math.max(0, ...sizes) / 1024);
}

async function painted(person, costs) {
    const times = [];
    await person.open('/machines/team/stopped-1?tab=overview', 'stopped-1');
    for (let turn = 0; turn < 11; turn += 1) {
        const mark = `mark-${turn}-${Date.now()}`;
        const seen = person.page.evaluate(text => new Promise(resolve => {
            const look = () => (document.body.innerText.includes(text) ? requestAnimationFrame(() => resolve(Date.now())) : requestAnimationFrame(look));
            look();
        }), mark);
        const answer = await person.page.evaluate(async ([path, text]) => {
            const { csrf } = await (await fetch('/auth/session')).json();
            const patched = await fetch(path, {
                method: 'PATCH', headers: { 'Content-Type': 'application/merge-patch+json', 'X-Fairway-CSRF': csrf },
                body: JSON.stringify({ metadata: { labels: { mark: text } } }),
            });
            return { status: patched.status, answered: Date.now() };
        }, ['/k8s/clusters/root/apis/kubevirt.io/v1/namespaces/team/virtualmachines/stopped-1', mark]);
        if (answer.status !== 200) throw new Error(`the label was refused with ${answer.status}`);
        times.push(Math.max(0, await seen - answer.answered));
    }
    return costs.note('paint', median(times), `median of 11 after the answer to the write, ${Math.max(...times)} ms at most`);
}
