// The golden path, whole, as a person goes it by clicks: from the form to a machine that answers those who have a key, a change in Git, and
// the end of all of it. What programs do (the calls, the push) is done beside the browser. Each frame of the film is one moment of it.

import { Caller } from './call.mjs';
import { Effects, ask, button, confirm, entry } from './effects.mjs';
import { Film } from './film.mjs';
import { step } from './runs.mjs';
import { screen, serial } from './screen.mjs';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk4mFcXrAbJHW8oC9y3Bn8g1ZbCwQdVn0nYw3x1t1Zq person@example.com';
const NAME = 'web';
const NAMESPACE = 'user-vms';
const MACHINE = `/machines/${NAMESPACE}/${NAME}`;
const BOOT = 150_000;
const LIMIT = 5;
const RAISED = 200;
/** In the order in which the template has them. */
const STEPS = ['Write the manifests', 'Write how it is reached', 'Make the repository', 'Make the Application', 'Register it in the catalog', 'Tell the owner'];

export async function golden(browser, settings, report) {
    if (!settings.guest) return;
    const person = await browser.person();
    await person.signIn();
    const film = new Film(person);
    const path = { person, page: person.page, report: untilOneFails(report, person), film, effects: new Effects(settings), caller: new Caller(settings) };
    for (const part of [order, grows, machine, key, calls, change, end]) await part(path);
    await film.end(path.report.isWhole());
    await person.context.close();
}

/** Each step begins where the one before has led: after one that failed there is a picture of where, and nothing else. */
function untilOneFails(report, person) {
    const before = report.failed;
    const isWhole = () => report.failed === before;
    const step = async (what, check) => {
        if (!isWhole()) return;
        await report.step(what, check);
        if (!isWhole()) await person.shot('failed-golden');
    };
    return { isWhole, step };
}

const next = page => page.getByRole('button', { name: 'Next', exact: true }).click();

/** From home to the end of the run. */
async function order(path) {
    const { person, page, report, film } = path;
    await report.step('home leads to the golden paths', async () => {
        await person.open('/home', 'Needs attention');
        await film.frame('home', 'Home: what needs attention, and what is mine');
        await page.getByRole('link', { name: 'Create', exact: true }).last().click();
        await person.see('Virtual machine');
        await person.check('cards');
        await film.frame('cards', 'The golden paths of the workspace');
    });
    await report.step('a form asks what it has to know', async () => {
        await page.getByRole('link', { name: 'Choose Virtual machine', exact: true }).click();
        await page.getByLabel(/^Name/).first().fill(NAME);
        await film.frame('form', 'One of them asks what it has to know');
        await next(page);
        await page.getByLabel(/SSH public key/).first().fill(KEY);
        await film.frame('size', 'Size, image, disk, key');
        await next(page);
        await page.getByLabel('Publish port 8080').check();
        await page.getByLabel(/^Who may call/).selectOption({ label: 'Whoever has an API key' });
        await page.getByLabel(/^Requests a minute/).fill(String(LIMIT));
        await person.check('form');
        await film.frame('published', 'Its web site published: who may call it, and how often');
        await next(page);
    });
    await report.step('the review says what will happen, before anything is written', async () => {
        // Some of it can be judged only when what it needs is there.
        await person.see(page.getByText(/Nothing would be refused|Everything would be accepted/), 30_000);
        for (const file of ['virtual-machine.yaml', 'authpolicy.yaml', 'ratelimitpolicy.yaml', 'apiproduct.yaml']) await person.see(page.getByText(file));
        await person.see(page.getByText(`https://${NAME}.apps.fairway.localhost`));
        await person.check('review');
        await page.getByRole('heading', { name: 'What will happen' }).evaluate(it => it.scrollIntoView());
        await film.frame('review', 'The review: node, quota, address, each file, and each object with the server\'s verdict');
        if ((await ask(page, '/k8s/clusters/root/apis/fairway.dev/v1alpha1/repositories')).body.items.some(it => it.metadata.name === NAME)) throw new Error('something is written already');
        await button(page, 'Create').click();
    });
    await report.step('the stepper goes through all steps, in their order', async () => {
        await page.waitForURL(/\/voyages\//);
        path.run = new URL(page.url()).pathname;
        for (const name of STEPS) await person.see(step(page, name, 'completed'), 90_000);
        await person.see(page.getByText('Succeeded', { exact: true }));
        const titles = await page.getByRole('list', { name: 'Steps' }).getByRole('listitem').allTextContents();
        const order = STEPS.map(name => titles.findIndex(title => title.includes(name)));
        if (order.some((at, n) => at === -1 || (n > 0 && at < order[n - 1]))) throw new Error(`in which order: ${titles.join(' | ')}`);
        path.address = await page.getByRole('link', { name: /^Web site/ }).getAttribute('href');
        await person.see(page.getByText(`fairway api-key request ${NAME}`));
        await person.check('run');
        await page.getByRole('list', { name: 'Steps' }).evaluate(it => it.scrollIntoView());
        await film.frame('run', 'The run, step by step, each with its log');
        await page.getByRole('heading', { level: 1, name: NAME, exact: true }).evaluate(it => it.scrollIntoView());
        await film.frame('made', 'What came of it');
        return path.address;
    });
}

/** What the run leads to: an Application, and all that it declares. */
async function grows({ person, page, report, film }) {
    await report.step('its Application becomes Synced and Healthy, with nothing missing', async () => {
        await page.getByRole('list', { name: 'What it made' }).getByRole('link', { name: NAME, exact: true }).and(page.locator('[href*="/applications/"]')).click();
        await page.waitForURL(/\/applications\/openshift-gitops\/web$/);
        // Filters offer the same words.
        for (const word of ['Synced', 'Healthy']) await person.see(page.getByText(word, { exact: true }).filter({ visible: true }), 30_000);
        const objects = page.getByRole('region', { name: `Objects of ${NAME}` });
        for (const kind of ['VirtualMachine', 'Service', 'Gateway', 'HTTPRoute', 'AuthPolicy', 'RateLimitPolicy', 'APIProduct']) await person.see(objects.getByText(new RegExp(`^${kind}( ·|$)`)));
        if (/Missing/.test(await objects.textContent())) throw new Error(`something is missing: ${await objects.textContent()}`);
        await person.check('application');
        await film.frame('application', 'Its Application is Synced and Healthy: everything that Git declares is there');
    });
    await report.step('the catalog leads to all of it', async () => {
        await person.open('/catalog', NAME);
        await page.getByRole('link', { name: NAME, exact: true }).first().click();
        await person.see('About');
        await person.see(page.getByText('VirtualMachine'), 30_000);
        await person.check('entity');
        await film.frame('entity', 'Its entry in the catalog: whose it is, what runs for it');
    });
}

async function machine(path) {
    const { person, page, report, film } = path;
    await report.step('its machine runs', async () => {
        await person.open(MACHINE, NAME);
        await person.see(page.getByText('Running', { exact: true }), BOOT);
        await person.check('machine');
        await film.frame('machine', 'Its machine runs');
    });
    await serial(path, MACHINE);
    await screen(path, MACHINE);
}

/** A key, asked for by who wants one and given by whose API it is; here both are one. */
async function key(path) {
    const { person, page, report, film, effects, caller } = path;
    await report.step('without a key the address answers 401', async () => {
        const { status, body } = await effects.becomes('401 is answered', async () => { const it = await caller.call(path.address); return it.status === 401 && it; }, 60_000);
        if (body.includes('Hello')) throw new Error('something of the guest comes through');
        if ((await caller.call(path.address, 'wrong')).status !== 401) throw new Error('a wrong key is one');
        return `${path.address}: ${status}`;
    });
    await report.step('a key is requested on the page of API products', async () => {
        await person.open('/gateways?tab=products');
        await button(page.getByRole('region', { name: NAME, exact: true }), 'Request a key').click();
        const dialog = page.getByRole('dialog');
        await dialog.getByLabel('Plan').selectOption('free');
        await dialog.getByLabel('What it is for').fill('to show the site');
        await person.check('request');
        await film.frame('request', 'Its API product: somebody asks for a key');
        await button(dialog, 'Send request').click();
        await dialog.waitFor({ state: 'hidden' });
    });
    await report.step('it is approved, and its page says how it is seen', async () => {
        await page.getByRole('tab', { name: 'API keys' }).click();
        await person.see(page.getByRole('table', { name: 'Requests for keys' }).getByText('to show the site'));
        await film.frame('approve', 'Whoever owns the API approves');
        await button(entry(page, 'to show the site'), 'Approve').click();
        const row = entry(page, `${NAMESPACE}/${NAME}-key`);
        await person.see(row.getByText('Approved', { exact: true }));
        const command = await row.locator('code').textContent();
        path.key = await effects.shell(command);
        if (path.key.length < 40) throw new Error(`${command} prints no key`);
        if ((await page.content()).includes(path.key)) throw new Error('the key is in the page');
        await person.check('approved');
        return command;
    });
}

async function calls(path) {
    const { person, page, report, film, effects, caller } = path;
    await report.step('with the key it answers 200', async () => {
        const { body } = await effects.becomes('200 is answered', async () => { const it = await caller.call(path.address, path.key); return it.status === 200 && it; }, 60_000);
        if (!body.includes(`Hello from ${NAME}.`)) throw new Error(`the guest answers: ${body}`);
        return body.trim();
    });
    await report.step('beyond the limit it answers 429, and the page says how far it is used up', async () => {
        const said = [];
        // More than two minutes together allow, as one may end meanwhile.
        for (let turn = 0; turn <= 2 * LIMIT; turn += 1) said.push((await caller.call(path.address, path.key)).status);
        if ([...new Set(said)].sort().join() !== '200,429') throw new Error(said.join(', '));
        await person.open('/gateways?tab=usage', 'Limits in use');
        await person.see(page.getByText('used up'));
        await person.check('usage');
        await film.frame('usage', 'Beyond its limit callers get 429; how far it is used up, and when it starts anew');
        return said.join(', ');
    });
    await report.step('why a request gets its answer is told stage by stage', async () => {
        await page.getByRole('tab', { name: 'Explain a request' }).click();
        await page.getByLabel(/^URL/).fill(path.address);
        await button(page, 'Explain').click();
        const answer = page.getByRole('region', { name: 'Answer' });
        await person.see(answer.getByRole('heading', { name: /401/ }));
        await person.see(answer.getByText('stops here'));
        await answer.scrollIntoViewIfNeeded();
        await person.check('explained');
        await film.frame('explained', 'Why a request without a key gets 401, stage by stage');
    });
}

/** Somebody changes a file and pushes a branch; the rest is clicked. */
async function change(path) {
    const { person, page, report, film, effects, caller } = path;
    const instance = async () => (await effects.get('vmi', NAMESPACE, NAME)).metadata.uid;
    let before;
    await report.step('a branch is pushed, and a pull request made of it', async () => {
        before = await instance();
        await person.open(`/repositories/root/${NAME}`, 'manifests');
        await button(page, 'The same in a terminal').click();
        const clone = await page.locator('code, pre').getByText(/^fairway repo clone/).first().textContent();
        await effects.shell(clone.trim());
        for (const line of [
            'git checkout -qb more', `sed -i 's/limit: ${LIMIT}$/limit: ${RAISED}/' manifests/ratelimitpolicy.yaml`,
            "git -c user.name=A -c user.email=a@example.com commit -qam 'Let more requests through'", 'git push -q -o fairway.wait=false origin more',
        ]) await effects.shell(line, NAME);
        await page.getByRole('tab', { name: 'Pull requests' }).click();
        await page.getByLabel('Branch to merge').selectOption('more', { timeout: 30_000 });
        await page.getByLabel('Title').fill('Let more requests through');
        await button(page, 'Create pull request').click();
        await page.waitForURL(/\/pulls\/\d+$/);
    });
    await report.step('its plan says what would change, and merging does it', async () => {
        const plan = page.getByRole('tabpanel', { name: 'Plan' });
        await person.see(plan.getByRole('region', { name: `RateLimitPolicy ${NAME}` }).filter({ hasText: `limit: ${RAISED}` }), 60_000);
        await person.check('plan');
        await film.frame('plan', 'A change in Git: the plan of a pull request says what merging would change');
        await button(page, 'Merge').click();
        await confirm(page, 'main', 'Merge');
        await person.see(page.getByText('Merged', { exact: true }));
        const limit = async () => (await effects.get('ratelimitpolicy', NAMESPACE, NAME)).spec.overrides.limits.everybody.rates[0].limit;
        await effects.becomes('the limit is that of Git', async () => await limit() === RAISED, 60_000);
        await effects.becomes('more requests get through', async () => {
            const said = await Promise.all(Array.from({ length: 2 * LIMIT + 1 }, () => caller.call(path.address, path.key)));
            return said.every(it => it.status === 200);
        }, 90_000);
        if (await instance() !== before) throw new Error('the machine was started anew for that');
    });
}

async function end(path) {
    const { person, page, report, film, effects, caller } = path;
    await report.step('what it has used is drawn', async () => {
        await person.open(`${MACHINE}?tab=metrics`, '5 minutes');
        // The node measures every ten seconds, and two points are a line.
        await page.locator('.fw-figures tbody tr').nth(2).waitFor({ state: 'attached', timeout: 60_000 });
        await person.check('metrics');
        await film.frame('metrics', 'What the machine has used, kept by its node');
    });
    await report.step('everything goes after the name of the run was typed', async () => {
        const name = path.run.split('/').pop();
        await person.open('/home', 'My latest runs');
        await page.getByRole('link', { name: NAME, exact: true }).and(page.locator(`[href$="/${name}"]`)).first().click();
        await button(page, 'Decommission').click();
        const dialog = page.getByRole('dialog');
        await person.see(dialog.getByText(/repository/i));
        await film.frame('decommission', 'Its end: what the run has made is listed, and the name has to be typed');
        await confirm(page, name, 'Decommission');
        await person.see(page.getByText('Decommissioned', { exact: true }), 120_000);
        await effects.gone('vm', NAMESPACE, NAME);
        await effects.gone('application.argoproj.io', 'openshift-gitops', NAME);
        await effects.gone('repositories.fairway.dev', '', NAME);
        await effects.becomes('nobody answers at its address', async () => ![200, 401, 429].includes((await caller.call(path.address, path.key)).status));
        await person.check('decommissioned');
        await film.frame('gone', 'Machine, disks, address, Application and repository are gone; the record stays');
    });
}
