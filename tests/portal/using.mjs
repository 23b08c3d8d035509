// What people do on pages without changing anything: with the keyboard alone, through graphs and trees, with questions to the server; and what
// pages say when they cannot look.

import { ask, button } from './effects.mjs';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk4mFcXrAbJHW8oC9y3Bn8g1ZbCwQdVn0nYw3x1t1Zq person@example.com';

export async function using(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    await keyboard(person, report);
    await graphs(person, report);
    await orders(person, report);
    await questions(person, settings, report);
    await repositories(person, report);
    await blindness(person, report);
    await person.context.close();
    await strangers(browser, settings, report);
}

/** What has the focus, in words. */
const focused = page => page.evaluate(() => {
    const it = document.activeElement;
    return it?.getAttribute('aria-label') || it?.textContent?.trim() || it?.id || it?.tagName || '';
});

/** Presses Tab until something has the focus, as somebody without a mouse does. */
async function tabTo(page, wanted, most = 120) {
    const seen = [];
    for (let turn = 0; turn < most; turn += 1) {
        await page.keyboard.press('Tab');
        const now = await focused(page);
        seen.push(now.slice(0, 40));
        if (wanted.test(now)) return seen;
    }
    throw new Error(`${wanted} is not reached with ${most} times Tab: ${[...new Set(seen)].join(' | ')}`);
}

/** The focus can be seen: without that nobody knows where he is. */
async function visibleFocus(page) {
    const box = await page.evaluate(() => { const { width, height, top, left } = document.activeElement.getBoundingClientRect(); return { width, height, top, left }; });
    if (box.width === 0 || box.height === 0) throw new Error(`the focus is on nothing that can be seen: ${JSON.stringify(box)}`);
}

async function keyboard(person, report) {
    const { page } = person;
    await report.step('the navigation is used with the keyboard', async () => {
        await person.open('/home', 'Needs attention');
        await page.keyboard.press('Tab');
        if (!/Skip to content/.test(await focused(page))) throw new Error(`Tab leads first to ${await focused(page)}`);
        const seen = await tabTo(page, /^Activity$/);
        for (const name of ['Home', 'Catalog', 'Create', 'Runs', 'Applications', 'VirtualMachines', 'Gateways and APIs', 'Repositories', 'Workspaces', 'Activity']) {
            if (!seen.includes(name)) throw new Error(`${name} is not reached`);
        }
        await visibleFocus(page);
        await page.keyboard.press('Enter');
        await page.waitForURL(/\/activity$/);
        await person.see('Who did what');
        await person.check('navigation by keyboard');
    });
    await report.step('a golden path is gone to its review with the keyboard alone', async () => {
        await person.open('/create', 'Virtual machine');
        await tabTo(page, /^Choose Virtual machine$/);
        await page.keyboard.press('Enter');
        await page.waitForURL(/\/create\/.+/);
        await person.see(page.getByLabel(/^Name/));
        await tabTo(page, /_name$|^Name/);
        await page.keyboard.type('by-keyboard');
        await tabTo(page, /^Next$/);
        await page.keyboard.press('Enter');
        await person.see(page.getByLabel(/SSH public key/));
        await tabTo(page, /ssh/i);
        await page.keyboard.insertText(KEY);
        await tabTo(page, /^Next$/);
        await page.keyboard.press('Enter');
        await page.waitForURL(/step=2/);
        await tabTo(page, /^Next$/);
        // As long as nobody has answered what would happen, nothing can be created.
        let answer;
        const held = new Promise(resolve => { answer = resolve; });
        await page.route(/\/api\/scaffolder\/v2\/dry-run$/, async route => { await held; await route.continue(); });
        await page.keyboard.press('Enter');
        await person.see('Asking the server what would happen');
        const create = button(page, 'Create');
        if (await create.isEnabled()) throw new Error('it can be created while nobody knows what would happen');
        answer();
        await person.see(page.getByText('virtual-machine.yaml'), 30_000);
        await page.unroute(/\/api\/scaffolder\/v2\/dry-run$/);
        if (!await create.isEnabled()) throw new Error('it cannot be created although it would be accepted');
        await tabTo(page, /^Create$/);
        await visibleFocus(page);
        await person.check('wizard by keyboard');
    });
    await report.step('a dialog keeps the focus, and Escape leaves it', async () => {
        await person.open('/machines/team/stopped-3', 'Stopped');
        await tabTo(page, /^Delete$/);
        await page.keyboard.press('Enter');
        await page.getByRole('dialog').waitFor();
        for (let turn = 0; turn < 8; turn += 1) {
            await page.keyboard.press('Tab');
            if (!await page.evaluate(() => document.querySelector('[role=dialog]').contains(document.activeElement))) throw new Error(`the focus is outside, on ${await focused(page)}`);
        }
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'hidden' });
        await person.check('dialog by keyboard');
    });
}

async function graphs(person, report) {
    const { page } = person;
    await report.step('the graph of relations is one of links', async () => {
        await person.open('/catalog/component/default/shop?tab=relations', 'ownedBy');
        await tabTo(page, /^group platform$/);
        await visibleFocus(page);
        await person.shot('relations-focus');
        // Nobody has described that group, and its page says so.
        person.tolerated = [/404/];
        await page.keyboard.press('Enter');
        await page.waitForURL(/\/catalog\/group\/default\/platform\?tab=relations/);
        await person.see('There is no entity group:default/platform');
        await person.check('relations by keyboard');
        person.tolerated = [];
    });
    await report.step('the tree of an Application: nothing is missing in one that is healthy, before and after the server has answered', async () => {
        let answer;
        const held = new Promise(resolve => { answer = resolve; });
        await page.route(/\/applications\/shop\/tree$/, async route => { await held; await route.continue(); });
        await person.open('/applications/openshift-gitops/shop', 'settings');
        const boxes = page.getByRole('region', { name: 'Objects of shop' });
        if (/Missing/.test(await boxes.textContent())) throw new Error(`before the answer: ${await boxes.textContent()}`);
        answer();
        await person.see(boxes.getByText(/Service · Healthy/));
        if (/Missing/.test(await boxes.textContent())) throw new Error(`after the answer: ${await boxes.textContent()}`);
        await page.unroute(/\/applications\/shop\/tree$/);
    });
    await report.step('an object of the tree is opened with the keyboard; its panel has its manifest, its difference and why', async () => {
        await page.getByRole('region', { name: 'Objects of shop' }).focus();
        await tabTo(page, /settings/);
        await page.keyboard.press('Enter');
        const panel = page.getByRole('complementary', { name: 'ConfigMap settings' });
        await panel.waitFor();
        await panel.getByRole('tab', { name: 'Live manifest' }).click();
        await person.see(panel.getByText('replicas'));
        await panel.getByRole('tab', { name: 'Diff' }).click();
        await person.see(panel.getByText(/It is as Git declares it|No differences/));
        await panel.getByRole('tab', { name: 'Why' }).click();
        await person.see(panel.getByText('Try again'), 30_000);
        await person.check('object panel');
        await person.shot('object-panel');
    });
    await report.step('objects say whether they are as Git has them, in the tree and in the list, all of them or some', async () => {
        const path = '/applications/openshift-gitops/shop';
        const boxes = page.getByRole('region', { name: 'Objects of shop' });
        await person.open(path, 'settings');
        await person.see(boxes.getByRole('button', { name: /^settings, ConfigMap.*Synced/ }));
        await page.getByLabel('Kind', { exact: true }).selectOption('Service');
        await page.waitForURL(/kind=Service/);
        await boxes.getByRole('button', { name: /^settings/ }).waitFor({ state: 'hidden' });
        await person.see(boxes.getByRole('button', { name: /^shop, Service/ }));
        await button(page, 'List').click();
        await person.see(page.getByRole('table', { name: 'Resources' }).getByText('Synced', { exact: true }));
        await person.check('objects, filtered');
        await button(page, 'Tree').click();
        const drawn = boxes.locator('svg').first();
        const before = (await drawn.boundingBox()).width;
        await button(page, 'Zoom in').click();
        if ((await drawn.boundingBox()).width <= before) throw new Error('the tree is not larger');
        await button(page, 'Fit').click();
        if ((await drawn.boundingBox()).width !== before) throw new Error('the tree is not as large as at first');
        await person.open(path, 'settings');
        await boxes.getByRole('button', { name: /^shop, Application/ }).click();
        await page.waitForURL(/tab=summary/);
        await person.see('Disable Auto-Sync');
    });
}

async function orders(person, report) {
    const { page } = person;
    for (const [path, label, first, last] of [['/machines?namespace=team&text=stopped', 'VirtualMachines', 'stopped-1', 'stopped-4'], ['/applications?view=list', 'Applications', 'broken', 'waiting']]) {
        await report.step(`${label} are sorted by what is clicked on`, async () => {
            await person.open(path, first);
            const table = page.getByRole('table', { name: label, exact: true });
            for (const [sort, name] of [['name', first], ['-name', last]]) {
                await button(table, 'Name').click();
                await page.waitForURL(url => url.searchParams.get('sort') === sort);
                await person.see(table.getByRole('row').nth(1).getByText(name, { exact: true }));
            }
            await person.check(`sorted ${label}`);
        });
    }
}

async function questions(person, settings, report) {
    const { page } = person;
    const url = `http://api.example.com:${settings.gateway}/hello?a=1&b=$(id)`;
    await report.step('a request is explained, with and without a key', async () => {
        await person.open('/gateways?tab=explain', 'Explain');
        await page.getByLabel(/^URL/).fill(url);
        await button(page, 'Explain').click();
        const answer = page.getByRole('region', { name: 'Answer' });
        await person.see(answer.getByRole('heading', { name: /401/ }));
        await person.see(answer.getByText('stops here'));
        await page.getByLabel(/^Headers/).fill('Authorization: APIKEY key-of-alice');
        await button(page, 'Explain').click();
        await person.see(answer.getByRole('heading', { name: /302/ }));
        await button(page, 'The same in a terminal').first().click();
        await person.see(page.getByText(`fairway gateway explain GET '${url}' --header 'Authorization: APIKEY key-of-alice'`));
        if (page.url().includes('key-of-alice')) throw new Error('the key is in the address');
        await person.check('explain');
        await person.shot('explained');
    });
    await report.step('commands of another workspace go there first', async () => {
        await person.open(`/w/${settings.many}/applications`, 'many-0000');
        await button(page, 'The same in a terminal').click();
        await person.see(page.getByText(`fairway workspace use :${settings.many}`));
        await person.check('commands');
    });
    await report.step('why says what it does not find, and finds what is there', async () => {
        await person.open('/gateways/httproutes/team/api?tab=why', 'Try again');
        const { status } = await ask(page, '/api/fairway/why?kind=HTTPRoute&namespace=team&name=api');
        if (status !== 200) throw new Error(`why answers ${status}`);
        await person.open('/gateways/httproutes/team/nowhere', 'There is no such page');
        await person.check('why');
    });
}

async function repositories(person, report) {
    const { page } = person;
    await report.step('a commit shows what it changed', async () => {
        await person.open('/repositories/root/shop?tab=commits&branch=larger', 'More replicas');
        await page.getByRole('link', { name: 'More replicas' }).click();
        await page.waitForURL(/\/commits\/[0-9a-f]{40}$/);
        await person.see(page.locator('.fw-diff .added').filter({ hasText: 'replicas: "3"' }));
        await person.see(page.locator('.fw-diff .removed').filter({ hasText: 'replicas: "1"' }));
        await person.check('commit');
        await person.shot('commit');
        // The first one has nothing before it.
        await page.getByRole('definition').getByRole('link').first().click();
        await person.see(page.locator('.fw-diff .added').filter({ hasText: 'kind: ConfigMap' }));
    });
    await report.step('the plan of a pull request is Fairway\'s, whatever comments say', async () => {
        await page.evaluate(async () => {
            const { csrf } = await (await fetch('/auth/session')).json();
            const body = JSON.stringify({ body: '<!-- fairway-plan -->\n### Plan\nNo changes at all, merge it.' });
            const answer = await fetch('/api/gitea/v1/repos/root/shop/issues/1/comments', { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Fairway-CSRF': csrf }, body });
            if (!answer.ok) throw new Error(`the comment was refused with ${answer.status}`);
        });
        await person.open('/repositories/root/shop/pulls/1', 'More replicas');
        const plan = page.getByRole('tabpanel', { name: 'Plan' });
        await person.see(plan.getByRole('region', { name: 'ConfigMap settings' }).filter({ hasText: 'replicas: "3"' }), 60_000);
        await person.see(plan.getByRole('link', { name: 'shop', exact: true }));
        if (/merge it/.test(await plan.textContent())) throw new Error('a comment is shown as the plan');
        await person.check('plan');
        await person.shot('plan');
        await page.getByRole('tab', { name: 'Comments' }).click();
        await person.see('No changes at all, merge it.');
        await person.see('none of it is a plan');
    });
}

async function blindness(person, report) {
    const { page } = person;
    for (const status of [403, 500, 0]) {
        await report.step(`home does not say that all is well when machines are answered with ${status || 'nothing'}`, async () => {
            const machines = /\/apis\/kubevirt\.io\/v1\/virtualmachines\?/;
            person.tolerated = [/Failed to load resource/, /net::ERR/, /^500 /];
            await page.route(machines, route => (status === 0 ? route.abort('connectionrefused') : route.fulfill({
                status, contentType: 'application/json', body: JSON.stringify({ kind: 'Status', status: 'Failure', code: status, message: `refused by the test with ${status}` }),
            })));
            try {
                await person.open('/home', 'Not everything could be looked at');
                await page.waitForTimeout(500);
                if (await page.getByText('Everything is well').isVisible()) throw new Error('it says that everything is well');
                await person.check(`blind ${status}`);
                if (status === 500) await person.shot('home-blind');
            } finally {
                await page.unroute(machines);
                person.tolerated = [];
            }
        });
    }
    await report.step('a server that says nothing is not waited for without end', async () => {
        person.tolerated = [/Failed to load resource/, /net::ERR/];
        await page.clock.install();
        await page.route(/\/publishedrules$/, () => { /* For ever. */ });
        await person.open('/gateways?tab=usage', 'Published rules');
        await page.clock.runFor(31_000);
        await person.see('no answer within 30 seconds');
        await person.see('The server does not answer.');
        await page.unroute(/\/publishedrules$/);
        person.tolerated = [];
    });
}

/** Somebody who was never here follows an address that was sent to him. */
async function strangers(browser, settings, report) {
    for (const [path, realm] of [['/w/root:acme/machines', 'acme'], ['/w/root/machines', 'root'], ['/machines', 'root']]) {
        await report.step(`whoever opens ${path} signs in at ${realm}`, async () => {
            const person = await browser.person();
            person.tolerated = [/401/];
            await person.page.goto(settings.portal + path);
            await person.see(person.page.locator('#password'));
            const found = new URL(person.page.url()).pathname.split('/').find(part => ['acme', 'root'].includes(part)) ?? 'root';
            if (found !== realm) throw new Error(person.page.url());
            await person.context.close();
        });
    }
}
