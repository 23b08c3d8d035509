// Places in thousands: the menu of workspaces and the tree of machines draw some of them, and find the others by what one types.
//
// The lists are the test's, as in long.mjs.

import { ask } from './effects.mjs';

const pad = number => String(number).padStart(4, '0');
const WORKSPACES = 10_000;
const NAMESPACES = 5_000;

/** Puts a list in the place of the server's, with its version, so that the watch goes on from there. */
async function instead(page, collection, items, act) {
    const { body } = await ask(page, `/k8s/clusters/root${collection}?limit=1`);
    const list = JSON.stringify({ apiVersion: body.apiVersion, kind: body.kind, metadata: { resourceVersion: body.metadata.resourceVersion }, items });
    const answers = url => url.pathname.endsWith(collection) && url.searchParams.get('watch') !== 'true';
    await page.route(answers, route => route.fulfill({ contentType: 'application/json', body: list }));
    try {
        return await act();
    } finally {
        await page.unroute(answers);
    }
}

export async function crowd(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    await namespaces(person, report);
    // Last: where it leads there is no such workspace.
    await workspaces(person, report);
    await person.context.close();
}

async function workspaces(person, report) {
    const { page } = person;
    await report.step(`of ${WORKSPACES} workspaces the menu draws some, and finds any`, async () => {
        const items = Array.from({ length: WORKSPACES }, (_, number) => ({ metadata: { name: `tenant-${pad(number)}`, uid: `u${number}` }, spec: {}, status: { phase: 'Ready' } }));
        return instead(page, '/apis/tenancy.kcp.io/v1alpha1/workspaces', items, async () => {
            await person.open('/home', 'Needs attention');
            await page.getByRole('button', { name: 'Workspace: root' }).click();
            const choices = page.getByRole('menuitem');
            await person.see(choices.filter({ hasText: 'root:tenant-0000' }));
            const drawn = await choices.count();
            if (drawn > 60) throw new Error(`${drawn} are drawn`);
            await person.see(page.getByText(/^9,?950 more/));
            await person.check('the menu of workspaces');
            await person.shot('workspaces-menu');
            const search = page.getByRole('searchbox', { name: 'Search workspaces' });
            await search.fill('7799');
            await person.see(choices.filter({ hasText: 'root:tenant-7799' }));
            if (await choices.filter({ hasText: 'tenant-' }).count() !== 1) throw new Error('others are shown as well');
            await search.press('Enter');
            await page.waitForURL(/\/w\/root:tenant-7799\/home/, { waitUntil: 'commit' });
            return `${drawn} drawn`;
        });
    });
}

async function namespaces(person, report) {
    const { page } = person;
    await report.step(`of ${NAMESPACES} namespaces the tree draws some, and finds any`, async () => {
        const items = Array.from({ length: NAMESPACES }, (_, number) => ({
            metadata: { name: `vm-${pad(number)}`, namespace: `place-${pad(number)}`, uid: `u${number}`, creationTimestamp: '2026-01-01T00:00:00Z', labels: { 'vm.openshift.io/folder': `folder-${number % 7}` } },
            spec: { runStrategy: 'Halted', template: { spec: { domain: {} } } }, status: { printableStatus: 'Stopped' },
        }));
        return instead(page, '/apis/kubevirt.io/v1/virtualmachines', items, async () => {
            await person.open('/w/root/machines', 'place-0000');
            const tree = page.getByRole('navigation', { name: /^Machines by workspace/ });
            await person.see(tree.getByRole('button', { name: /^place-0000/ }));
            const drawn = await tree.getByRole('listitem').count();
            if (drawn > 130) throw new Error(`${drawn} lines are drawn`);
            await person.check('the tree of machines');
            await tree.getByRole('searchbox', { name: 'Search namespaces and folders' }).or(tree.getByRole('textbox', { name: 'Search namespaces and folders' })).fill('4321');
            await tree.getByRole('button', { name: /^place-4321/ }).click();
            await page.waitForURL(/namespace=place-4321/);
            await person.see(page.getByRole('table').getByText('vm-4321', { exact: true }));
            await person.shot('machines-tree');
            // What was chosen is seen, though it is far behind the first lines.
            await page.reload();
            await person.see(tree.getByRole('button', { name: /^place-4321/ }));
            await tree.getByRole('button', { name: /^Show more/ }).click();
            const then = await tree.getByRole('listitem').count();
            if (then <= drawn) throw new Error(`${then} lines are drawn after asking for more`);
            return `${drawn} drawn, ${then} after asking for more`;
        });
    });
}
