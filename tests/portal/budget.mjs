// What pages cost, printed beside what they should cost. Sizes are the same on every machine and are insisted on; times are not.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const MAX_SCRIPT = 300 * 1024;
const MANY = 1_000;

export async function budget(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    await report.step('compressed script of the first page', async () => {
        const fresh = await browser.person({ storageState: await person.context.storageState() });
        const session = await fresh.context.newCDPSession(fresh.page);
        await session.send('Network.enable');
        const scripts = new Map();
        let bytes = 0;
        session.on('Network.responseReceived', event => { if (event.type === 'Script') scripts.set(event.requestId, event.response.url); });
        session.on('Network.loadingFinished', event => { if (scripts.has(event.requestId)) bytes += event.encodedDataLength; });
        await fresh.open('/home', 'Home');
        const interactive = await fresh.page.evaluate(() => Math.round(performance.now()));
        await fresh.page.waitForTimeout(500);
        await fresh.context.close();
        // Files out of a directory are not compressed on their way.
        if (settings.dist) bytes = [...scripts.values()].reduce((sum, url) => sum + gzipSync(readFileSync(join(settings.dist, new URL(url).pathname))).length, 0);
        if (bytes > MAX_SCRIPT) throw new Error(`${Math.round(bytes / 1024)} KB in ${scripts.size} files, more than ${MAX_SCRIPT / 1024}`);
        return `${Math.round(bytes / 1024)} KB of at most 300; its content was there after ${interactive} ms (aim: 1000)`;
    });
    await report.step(`${MANY} Applications`, async () => {
        const begun = Date.now();
        await person.open(`/w/${settings.many}/applications`);
        await person.see(person.page.getByText("many-0000"));
        const shown = Date.now() - begun;
        await person.page.waitForTimeout(1_000);
        const session = await person.context.newCDPSession(person.page);
        await session.send('HeapProfiler.collectGarbage');
        const { usedSize } = await session.send('Runtime.getHeapUsage');
        const nodes = await person.page.evaluate(() => document.querySelectorAll('*').length);
        if (nodes > 10_000) throw new Error(`${nodes} elements: the list is not virtualised`);
        return `shown after ${shown} ms (aim: 1000), heap ${Math.round(usedSize / 1048576)} MB (aim: 150), ${nodes} elements`;
    });
    await report.step('from a write to the screen, by watch', async () => {
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
                const sent = Date.now();
                const patched = await fetch(path, {
                    method: 'PATCH', headers: { 'Content-Type': 'application/merge-patch+json', 'X-Fairway-CSRF': csrf },
                    body: JSON.stringify({ metadata: { labels: { mark: text } } }),
                });
                return { status: patched.status, answered: Date.now(), sent };
            }, ['/k8s/clusters/root/apis/kubevirt.io/v1/namespaces/team/virtualmachines/stopped-1', mark]);
            if (answer.status !== 200) throw new Error(`the label was refused with ${answer.status}`);
            times.push(Math.max(0, await seen - answer.answered));
        }
        times.sort((a, b) => a - b);
        return `${times[5]} ms after the answer at the median (aim: 100), ${times.at(-1)} ms at most`;
    });
    await person.context.close();
}
