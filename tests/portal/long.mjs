// Lists of ten thousand: they are scrolled from end to end, and the page never has more in it than can be seen.
//
// The list is the test's, put in place of the server's first answer; the page cannot tell. What the server does with as many is measured
// elsewhere (bench).

import { ask } from './effects.mjs';
import { ledger, median, ROWS as COUNT } from './floors.mjs';

/** What a page of ours has besides rows is some hundreds. */
const MOST_ELEMENTS = 5_000;

const pad = number => String(number).padStart(5, '0');

const KINDS = {
    machines: {
        collection: '/apis/kubevirt.io/v1/virtualmachines', path: '/machines', region: 'table', label: 'VirtualMachines',
        item: number => ({
            metadata: { name: `row-${pad(number)}`, namespace: `n${number % 50}`, uid: `u${number}`, creationTimestamp: '2026-01-01T00:00:00Z', labels: { 'vm.openshift.io/folder': `f${number % 7}` } },
            spec: { runStrategy: 'Halted', template: { spec: { domain: { cpu: { cores: 1 }, memory: { guest: '128Mi' } } } } }, status: { printableStatus: number % 3 ? 'Stopped' : 'Running' },
        }),
        // In the order of their namespaces, of which n9 is the last.
        first: 'row-00000', last: 'row-09959',
    },
    applications: {
        collection: '/apis/argoproj.io/v1alpha1/applications', path: '/applications', region: 'list', label: 'Applications',
        item: number => ({
            metadata: { name: `row-${pad(number)}`, namespace: 'openshift-gitops', uid: `u${number}` },
            spec: { project: 'default', source: { repoURL: 'https://git.example.invalid/x.git', path: 'm' }, destination: { name: 'in-cluster', namespace: 'x' } },
            status: { health: { status: 'Healthy' }, sync: { status: 'Synced' } },
        }),
        first: 'row-00000', last: 'row-09999',
    },
    workspaces: {
        collection: '/apis/tenancy.kcp.io/v1alpha1/workspaces', path: '/workspaces', region: 'table', label: 'Workspaces below',
        item: number => ({
            metadata: { name: `row-${pad(number)}`, uid: `u${number}`, creationTimestamp: '2026-01-01T00:00:00Z' },
            spec: { type: { name: 'universal', path: 'root' } }, status: { phase: 'Ready' },
        }),
        first: 'row-00000', last: 'row-09999',
    },
};

/** Scrolls from one end to the other, further with every frame, and tells how long each took. */
const SCROLL = async element => {
    const frame = () => new Promise(resolve => { requestAnimationFrame(resolve); });
    const steps = 240;
    const frames = [];
    let most = 0;
    for (let [step, before] = [1, await frame()]; step <= steps; step += 1) {
        element.scrollTop = (element.scrollHeight - element.clientHeight) * step / steps;
        const now = await frame();
        frames.push(now - before);
        before = now;
        if (step % 10 === 0) most = Math.max(most, document.querySelectorAll('*').length);
    }
    return { most, frames };
};

const slow = values => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.95)];
const rounded = value => Math.round(value * 10) / 10;

export async function long(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    const { page } = person;
    const all = [];
    for (const [what, kind] of Object.entries(KINDS)) {
        await report.step(`${COUNT} ${what} are scrolled from end to end`, async () => {
            // The version of the real list, so that the watch goes on from there.
            const { body } = await ask(page, `/k8s/clusters/root${kind.collection}?limit=1`);
            const items = Array.from({ length: COUNT }, (_, number) => kind.item(number));
            const list = JSON.stringify({ apiVersion: body.apiVersion, kind: body.kind, metadata: { resourceVersion: body.metadata.resourceVersion }, items });
            const answers = url => url.pathname.endsWith(kind.collection) && url.searchParams.get('watch') !== 'true';
            await page.route(answers, route => route.fulfill({ contentType: 'application/json', body: list }));
            try {
                await person.open(kind.path);
                await person.see(page.getByText(kind.first, { exact: true }), 30_000);
                const box = page.getByRole(kind.region, { name: kind.label, exact: true });
                const { most, frames } = await box.evaluate(SCROLL);
                all.push(...frames);
                await person.see(page.getByText(kind.last, { exact: true }));
                if (most > MOST_ELEMENTS) throw new Error(`the page had ${most} elements`);
                // The keyboard gets there, too.
                if (kind.region === 'table') {
                    await box.focus();
                    await page.keyboard.press('Home');
                    await person.see(page.getByText(kind.first, { exact: true }));
                    await page.keyboard.press('End');
                    await person.see(page.getByText(kind.last, { exact: true }));
                }
                await person.check(`long ${what}`);
                await person.shot(`long-${what}`);
                return `a frame takes ${rounded(median(frames))} ms at the median, ${rounded(slow(frames))} ms at the 95th percentile; at most ${most} elements`;
            } finally {
                await page.unroute(answers);
            }
        });
    }
    if (all.length > 0) {
        const lists = `${Object.keys(KINDS).join(', ')}; ${all.length} frames`;
        ledger.note('frame', rounded(median(all)), `median; ${lists}`);
        ledger.note('slowFrame', rounded(slow(all)), `95th percentile; the slowest ${rounded(Math.max(...all))} ms`);
    }
    await person.context.close();
}
