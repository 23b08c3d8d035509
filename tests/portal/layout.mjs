// Things stand apart from each other and stay where they are: dialogs, cards, what leads to the terminal, the steps of a run.

import { begin } from './runs.mjs';
import { button } from './effects.mjs';

/** Between the end of one thing and the beginning of the next. */
async function gap(above, below) {
    const [a, b] = [await above.boundingBox(), await below.boundingBox()];
    return b.y - (a.y + a.height);
}

async function apart(what, above, below, least = 6) {
    const found = await gap(above, below);
    if (found < least) throw new Error(`${what}: ${found} px`);
}

export async function layout(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    const { page } = person;
    await report.step('cards, titles and what is for the terminal stand apart', async () => {
        await person.open('/create', 'Two notes');
        const card = page.locator('.pf-v6-c-card').filter({ hasText: 'Virtual machine' }).first();
        await apart('owner and button', card.getByText(/^Owner:/), card.getByRole('link', { name: /^Choose/ }));
        await apart('cards and terminal', page.locator('.fw-grid'), button(page, 'The same in a terminal'));
        await card.getByRole('link', { name: /^Choose/ }).click();
        await person.see(page.getByRole('navigation', { name: 'Breadcrumb' }));
        await apart('breadcrumb and title', page.getByRole('navigation', { name: 'Breadcrumb' }), page.getByRole('heading', { level: 1 }), 3);
    });
    await report.step('the steps of a run stay where they are when it is done, and show which one is looked at', async () => {
        await begin(person, { Name: 'laid-out', 'Namespace of the second': 'team', 'Seconds between them': '3' });
        const steps = page.getByRole('list', { name: 'Steps' });
        await person.see(page.getByText('Running', { exact: true }));
        const before = await steps.boundingBox();
        await person.see(page.getByText('Succeeded', { exact: true }), 60_000);
        await person.see(page.getByRole('listitem', { name: 'Write the second: completed', exact: true }));
        const after = await steps.boundingBox();
        if (Math.abs(after.y - before.y) > 4) throw new Error(`they went from ${before.y} to ${after.y}`);
        await steps.getByRole('button', { name: 'Wait', exact: true }).click();
        const floor = name => steps.getByRole('listitem', { name, exact: true }).locator('.pf-v6-c-progress-stepper__step-main').evaluate(it => getComputedStyle(it).backgroundColor);
        if (await floor('Wait: completed') === await floor('Write the first: completed')) throw new Error('the chosen step looks like the others');
        await person.check('a run, laid out');
        await person.shot('run-layout');
    });
    await report.step('the texts of a dialog stand apart, and a list is one', async () => {
        await button(page, 'Decommission').click();
        const dialog = page.getByRole('dialog');
        const list = dialog.getByRole('list').first();
        await list.waitFor();
        if (await list.evaluate(it => getComputedStyle(it).listStyleType) !== 'disc') throw new Error('the list has no bullets');
        await apart('a paragraph and the list', dialog.locator('p').last(), list);
        await apart('the list and the question', list, dialog.locator('form').first());
        await person.check('a dialog, laid out');
        await person.shot('dialog-layout');
        await button(dialog, 'Cancel').click();
    });
    await report.step('nothing in a list or beside a title is solid red', async () => {
        for (const [path, sign] of [['/workspaces', 'acme'], ['/workspaces?tab=members', 'Add member'], ['/machines', 'stopped-1'], ['/machines/team/stopped-1', 'Stopped'], ['/gateways?tab=keys', 'mine'], ['/applications/openshift-gitops/shop', 'settings']]) {
            await person.open(path, sign);
            const red = await page.locator('main .pf-v6-c-button.pf-m-danger:not(.pf-m-link, .pf-m-secondary)').count();
            if (red > 0) throw new Error(`${path} has ${red}`);
        }
    });
    await person.context.close();
}
