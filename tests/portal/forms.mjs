// Forms of golden paths: each of Backstage's fields, filled with the keyboard alone; answers that outlive the session, and secrets that do not.

import { button } from './effects.mjs';

const PATH = '/create/default/questions';
const TOKEN = 'a-token-that-nobody-may-keep';

export async function forms(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    await filled(person, report);
    await kept(person, report);
    await left(person, report);
    await person.context.close();
    await told(browser, settings, report);
}

/** The field of a question. It has the question's name, and no other. */
const field = (page, name, role = 'combobox') => page.getByRole(role, { name: new RegExp(`^${name}`) });

/** The offers of the menu that is open. */
const offers = page => page.getByRole('listbox').getByRole('option');

/** Types into a field, waits until the menu has what is meant, and takes it. */
async function choose(person, name, typed, offer) {
    const { page } = person;
    await field(page, name).focus();
    await page.keyboard.type(typed);
    await person.see(page.getByRole('option', { name: offer, exact: true }));
    const isMarked = async () => {
        const id = await field(page, name).getAttribute('aria-activedescendant');
        return id !== null && (await page.locator(`[id="${id}"]`).textContent())?.trim() === offer;
    };
    for (let turn = 0; turn < 5 && !await isMarked(); turn += 1) await page.keyboard.press('ArrowDown');
    if (!await isMarked()) throw new Error(`${name}: ${offer} is not reached with the keyboard`);
    await page.keyboard.press('Enter');
    await page.getByRole('listbox').waitFor({ state: 'detached' });
}

async function is(page, name, expected) {
    const value = await field(page, name).inputValue();
    if (value !== expected) throw new Error(`${name} is ${JSON.stringify(value)}, not ${expected}`);
}

async function filled(person, report) {
    const { page } = person;
    await report.step('pickers show that they are some: an arrow, a menu, a name, and what is wrong', async () => {
        await person.open(PATH, 'Entities');
        for (const name of ['Component', 'Mine', 'Several', 'Tags', 'My group']) await person.see(field(page, name));
        await field(page, 'Component').press('ArrowDown');
        await person.see(page.getByRole('option', { name: 'component:default/shop', exact: true }));
        await person.check('an open picker');
        await person.shot('form-menu');
        await page.keyboard.press('Escape');
        await page.getByRole('listbox').waitFor({ state: 'detached' });
        await button(page, 'Next').click();
        for (const name of ['Component', 'Mine', 'My group']) if (await field(page, name).getAttribute('aria-invalid') !== 'true') throw new Error(`${name} is not marked as wrong`);
        await person.check('pickers that are wrong');
        await person.shot('form-wrong');
    });
    await report.step('entities, tags and groups are chosen with the keyboard', async () => {
        await field(page, 'Name', 'textbox').fill('not a name');
        // Nothing but what is offered is an answer here.
        await field(page, 'Component').focus();
        await page.keyboard.type('no such thing');
        await person.see('Nothing matches');
        await page.keyboard.press('Tab');
        await is(page, 'Component', '');
        await choose(person, 'Component', 'shop', 'component:default/shop');
        await is(page, 'Component', 'component:default/shop');
        // Of those that are mine, and have tags; the kind goes without saying.
        await field(page, 'Mine').press('ArrowDown');
        await person.see(page.getByRole('option', { name: 'tools', exact: true }));
        if (await offers(page).count() !== 1) throw new Error(`mine: ${(await offers(page).allTextContents()).join(' | ')}`);
        await page.keyboard.press('Escape');
        await choose(person, 'Mine', 'too', 'tools');
        await choose(person, 'Several', 'shop', 'shop');
        await choose(person, 'Several', 'tools', 'tools');
        // One that is not there yet may be named.
        await field(page, 'Several').focus();
        await page.keyboard.type('later');
        await page.keyboard.press('Enter');
        for (const name of ['shop', 'tools', 'later']) await person.see(page.getByRole('button', { name: `Take ${name} away`, exact: true }));
        await field(page, 'Several').press('Backspace');
        await page.getByRole('button', { name: 'Take later away' }).waitFor({ state: 'detached' });
        await choose(person, 'Tags', 'toolk', 'toolkit');
        await field(page, 'Tags').focus();
        await page.keyboard.type('Web,ui');
        await page.keyboard.press('Tab');
        for (const name of ['toolkit', 'web', 'ui']) await person.see(page.getByRole('button', { name: `Take ${name} away`, exact: true }));
        await choose(person, 'My group', 'cr', 'crew');
        await button(page, 'Next').click();
        await person.see('A name has letters, digits');
        await field(page, 'Name', 'textbox').fill('a-name');
        await person.check('a filled form');
        await person.shot('form-filled');
        await button(page, 'Next').press('Enter');
        await page.waitForURL(/step=1/);
    });
    await report.step('a repository and its branch are chosen with the keyboard', async () => {
        // Only what is allowed.
        await field(page, 'Owner').press('ArrowDown');
        await person.see(page.getByRole('option', { name: 'acme', exact: true }));
        if ((await offers(page).allTextContents()).join() !== 'root,acme') throw new Error(`owners: ${(await offers(page).allTextContents()).join(' | ')}`);
        await page.keyboard.press('Escape');
        await choose(person, 'Owner', 'roo', 'root');
        // The question has the same name, of which it is a part.
        const repository = page.getByRole('group', { name: /^Repository/ }).getByRole('combobox', { name: /^Repository/ });
        await repository.focus();
        await page.keyboard.type('sho');
        await person.see(page.getByRole('option', { name: 'shop', exact: true }));
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('Enter');
        await choose(person, 'Branch', 'larg', 'larger');
        await person.check('repository pickers');
        await person.shot('form-repository');
        await button(page, 'Next').press('Enter');
        await page.waitForURL(/step=2/);
    });
}

/** The session ends in the middle of the form, and somebody signs in again in the same tab. */
async function kept(person, report) {
    const { page } = person;
    const stored = () => page.evaluate(() => JSON.stringify({ ...sessionStorage }) + JSON.stringify({ ...localStorage }));
    await report.step('answers outlive the session, and secrets are kept nowhere', async () => {
        await page.getByLabel(/^Token/).fill(TOKEN);
        await page.getByLabel('Note').fill('to be kept');
        if (!(await stored()).includes('to be kept')) throw new Error(`nothing is kept: ${await stored()}`);
        if ((await stored()).includes(TOKEN)) throw new Error('the secret is kept in the browser');
        await person.context.clearCookies();
        await person.signIn(`${PATH}?step=2`);
        await person.see('Your answers are still here');
        await person.see(page.getByRole('heading', { name: 'Secrets', exact: true }));
        if (await page.getByLabel('Note').inputValue() !== 'to be kept') throw new Error('the answer is lost');
        if (await page.getByLabel(/^Token/).inputValue() !== '') throw new Error('the secret is there again');
        await person.check('a form that is taken up again');
        await person.shot('form-kept');
    });
    await report.step('the review has all answers in their form, and what was sent is kept no longer', async () => {
        await page.getByLabel(/^Token/).fill(TOKEN);
        await button(page, 'Next').click();
        const answers = page.locator('main');
        for (const text of ['component:default/shop', 'component:default/tools', 'group:default/crew', 'toolkit, web, ui', 'fairway?owner=root&repo=shop', 'larger']) await person.see(answers.getByText(text, { exact: false }));
        await person.see('Everything would be accepted', 30_000);
        if ((await page.content()).includes(TOKEN)) throw new Error('the review shows the secret');
        await person.shot('form-review');
        await button(page, 'Create').click();
        await page.waitForURL(/\/voyages\//);
        if ((await stored()).includes('to be kept')) throw new Error('what was sent is still kept');
        await person.open(PATH, 'Entities');
        await is(page, 'Component', '');
    });
    await report.step('whoever starts over has an empty form', async () => {
        await field(page, 'Name', 'textbox').fill('to-be-dropped');
        await page.reload();
        await person.see('Your answers are still here');
        if (await field(page, 'Name', 'textbox').inputValue() !== 'to-be-dropped') throw new Error('the answer is lost');
        await button(page, 'Start over').click();
        if (await field(page, 'Name', 'textbox').inputValue() !== '') throw new Error('the form is not empty');
        if ((await stored()).includes('to-be-dropped')) throw new Error('it is still kept');
    });
}

/** Signing out takes answers along: somebody else may come to this tab. */
async function left(person, report) {
    const { page } = person;
    await report.step('whoever signs out leaves no answers in the tab', async () => {
        await person.open(PATH, 'Entities');
        await field(page, 'Name', 'textbox').fill('to-be-left');
        const stored = () => page.evaluate(() => JSON.stringify({ ...sessionStorage }));
        if (!(await stored()).includes('to-be-left')) throw new Error('nothing is kept');
        // Nobody is signed in any more, and the application asks.
        person.tolerated = [/401/];
        await page.getByRole('button', { name: /^Account of/ }).click();
        await page.getByRole('menuitem', { name: 'Sign out' }).click();
        await person.see(page.locator('#password'));
        await person.signIn(PATH);
        await person.see('Entities');
        if ((await stored()).includes('to-be-left')) throw new Error('it is still kept');
    });
}

/** The menu on a phone and in the dark, and a catalog that does not answer. */
async function told(browser, settings, report) {
    const person = await browser.person({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: 'dark' });
    const { page } = person;
    await person.signIn();
    await report.step('a picker is used on a phone, in the dark', async () => {
        await person.open(PATH, 'Entities');
        await field(page, 'Component').tap();
        await person.see(page.getByRole('option', { name: 'component:default/shop', exact: true }));
        await person.check('a picker on a phone');
        await person.shot('phone-form-menu');
        await page.getByRole('option', { name: 'component:default/shop', exact: true }).tap();
        await is(page, 'Component', 'component:default/shop');
    });
    await report.step('a catalog that does not answer is told, and what may be typed can be', async () => {
        person.tolerated = [/Failed to load resource/, /^500 /];
        const refs = /\/api\/catalog\/entities\/by-query/;
        await page.route(refs, route => route.fulfill({ status: 500, contentType: 'application/json', body: '{"error":{"name":"Error","message":"not today"}}' }));
        await person.open(PATH, 'The catalog could not be asked: not today');
        await field(page, 'Mine').fill('anything');
        await page.keyboard.press('Tab');
        await is(page, 'Mine', 'anything');
        await page.unroute(refs);
        person.tolerated = [];
    });
    await person.context.close();
}
