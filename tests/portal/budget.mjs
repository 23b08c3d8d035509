// What pages cost: the first one, one with a thousand Applications as they are after months of work, and one that changes.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ledger, MANY, median } from './floors.mjs';

const TURNS = 5;

export async function budget(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    const state = await person.context.storageState();
    await report.step('the first page', () => first(browser, settings, state));
    await report.step(`the page with ${MANY} Applications`, () => many(browser, settings, state));
    await report.step('from a watch event to the screen', () => painted(person));
    await person.context.close();
}

/**
 * A page in a browser that has nothing of it yet, and the milliseconds until a look at it is content. That is asked in every frame from
 * within: a driver that looks now and then would be measured, too.
 */
async function fresh(browser, state, path, look, prepare = async () => undefined) {
    const person = await browser.person({ storageState: state });
    await prepare(person);
    await person.context.addInitScript(`(() => {
        const isThere = ${look};
        const ask = () => (isThere() ? globalThis.fairwayThere = performance.now() : requestAnimationFrame(ask));
        requestAnimationFrame(ask);
    })()`);
    await person.open(path);
    await person.page.waitForFunction(() => globalThis.fairwayThere);
    return { person, took: Math.round(await person.page.evaluate(() => globalThis.fairwayThere)) };
}

const between = times => `${Math.min(...times)} to ${Math.max(...times)} ms`;

/** It can be used when the navigation is there and the page behind it has its heading. */
async function first(browser, settings, state) {
    const times = [];
    let [bytes, files] = [0, 0];
    for (let turn = 0; turn < TURNS; turn += 1) {
        const scripts = new Map();
        bytes = 0;
        const { person, took } = await fresh(browser, state, '/home', () => document.querySelector('nav a') && document.querySelector('main h1'), async ({ context, page }) => {
            const session = await context.newCDPSession(page);
            await session.send('Network.enable');
            session.on('Network.responseReceived', event => { if (event.type === 'Script') scripts.set(event.requestId, event.response.url); });
            session.on('Network.loadingFinished', event => { if (scripts.has(event.requestId)) bytes += event.encodedDataLength; });
        });
        times.push(took);
        await person.page.waitForTimeout(300);
        // Files out of a directory are not compressed on their way.
        if (settings.dist) bytes = [...scripts.values()].reduce((sum, url) => sum + gzipSync(readFileSync(join(settings.dist, new URL(url).pathname))).length, 0);
        files = scripts.size;
        await person.context.close();
    }
    const told = ledger.note('interactive', median(times), `navigation and heading; median of ${TURNS} fresh browsers, ${between(times)}`);
    return `${told}; ${ledger.note('script', Math.round(bytes / 1024), `${files} files`)}`;
}

async function many(browser, settings, state) {
    const [times, sizes] = [[], []];
    let [heap, elements, weight] = [0, 0, 0];
    for (let turn = 0; turn < TURNS; turn += 1) {
        const { person, took } = await fresh(browser, state, `/w/${settings.many}/applications`,
            () => { const text = document.querySelector('main')?.textContent ?? ''; return text.includes('many-0000') && /1,?000 Applications/i.test(text); });
        times.push(took);
        // As somebody finds it who looks a moment later: nobody makes the browser collect what is no longer used.
        await person.page.waitForTimeout(1_000);
        sizes.push(await renderer(browser));
        const session = await person.context.newCDPSession(person.page);
        await session.send('HeapProfiler.collectGarbage');
        heap = Math.round((await session.send('Runtime.getHeapUsage')).usedSize / 1048576);
        elements = await person.page.evaluate(() => document.querySelectorAll('*').length);
        weight = await person.page.evaluate(async path => (await (await fetch(path)).text()).length, `/k8s/clusters/${settings.many}/apis/argoproj.io/v1alpha1/applications?pretty=false`);
        await person.context.close();
    }
    const told = ledger.note('applications', median(times), `${(weight / 1e6).toFixed(1)} MB of JSON, until all are counted and the first tile is drawn; median of ${TURNS} fresh browsers, ${between(times)}`);
    // Nowhere but on Linux is it known.
    if (median(sizes) > 0) ledger.note('memory', median(sizes), `RssAnon of the largest renderer a second later; median of ${TURNS}, ${Math.max(...sizes)} MB at most`);
    ledger.note('heap', heap, 'after a collection');
    return `${told}; ${ledger.note('elements', elements, 'in the document')}`;
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

async function painted(person) {
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
    return ledger.note('paint', median(times), `median of 11 after the answer to the write, ${Math.max(...times)} ms at most`);
}
