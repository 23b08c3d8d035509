// Runs of golden paths that do not go well: one fails and is tried again, one is cancelled half-way. What was made is taken back both times.

import { Effects, button, confirm } from './effects.mjs';

const ELSEWHERE = 'elsewhere';

export async function runs(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    const effects = new Effects(settings);
    await failed(person, effects, report);
    await cancelled(person, effects, report);
    await person.context.close();
}

/** Answers the questions, looks at the review, and has it done. `meanwhile` happens while somebody reads the review. */
export async function begin(person, answers, meanwhile = async () => undefined) {
    const { page } = person;
    await person.open('/create', 'Two notes');
    await page.getByRole('link', { name: 'Choose Two notes', exact: true }).click();
    for (const [name, value] of Object.entries(answers)) {
        await page.getByRole('textbox', { name, exact: true }).or(page.getByRole('spinbutton', { name, exact: true })).fill(value);
    }
    await button(page, 'Next').click();
    const create = button(page, 'Create');
    await person.see('Everything would be accepted', 30_000);
    await meanwhile();
    await create.click();
    await page.waitForURL(/\/voyages\/default\/./);
    return page.url().split('/').pop();
}

/** A step of the run as the stepper shows it. */
export function step(page, name, state) {
    return page.getByRole('listitem', { name: `${name}: ${state}`, exact: true });
}

async function failed(person, effects, report) {
    const { page } = person;
    const note = (namespace, name) => effects.get('configmap', namespace, name);
    let name;
    await report.step('a run that fails says at which step and why, and takes back what it had made', async () => {
        await effects.kubectl('create', 'namespace', ELSEWHERE);
        name = await begin(person, { Name: 'to-retry', 'Namespace of the second': ELSEWHERE }, async () => {
            await effects.kubectl('delete', 'namespace', ELSEWHERE);
        });
        await person.see(page.getByText('Failed', { exact: true }), 60_000);
        await person.see(step(page, 'Write the second', 'failed'));
        await person.see(page.locator('.pf-v6-c-alert.pf-m-danger').filter({ hasText: ELSEWHERE }));
        await person.see(step(page, 'Write the first', 'undone'));
        if (await note('team', 'to-retry')) throw new Error('what the first step had made is still there');
        if (await button(page, 'Cancel run').isVisible()) throw new Error('a run that is over can be cancelled');
        await person.check('failed run');
        await person.shot('run-failed');
    });
    for (const [tab, sign] of [['events', 'No events'], ['why', 'Try again'], ['yaml', 'template: template:default/two-notes']]) {
        await report.step(`the run has its ${tab}`, async () => {
            await person.open(`/voyages/default/${name}?tab=${tab}`);
            await person.see(page.getByRole('tabpanel').getByText(sign), 30_000);
            await person.see(page.getByRole('heading', { level: 1, name: 'to-retry', exact: true }));
            await person.check(`run ${tab}`);
            await person.shot(`run-${tab}`);
        });
    }
    await report.step('it waits at home for somebody', async () => {
        await person.open('/home');
        await person.see(page.getByRole('link', { name: 'to-retry', exact: true }));
        await person.open(`/voyages/default/${name}`, 'Failed');
    });
    await report.step('Retry goes the whole way as soon as nothing stands in it', async () => {
        const before = (await effects.get('voyage', 'default', name)).status.attempt ?? 0;
        await effects.kubectl('create', 'namespace', ELSEWHERE);
        await button(page, 'Retry').click();
        await person.see(page.getByText('Succeeded', { exact: true }), 60_000);
        for (const one of ['Write the first', 'Write the second']) await person.see(step(page, one, 'completed'));
        if (!await note('team', 'to-retry') || !await note(ELSEWHERE, 'to-retry')) throw new Error('it says Succeeded, and not everything is there');
        if (await button(page, 'Retry').isVisible()) throw new Error('a run that has succeeded can be tried again');
        if ((await effects.get('voyage', 'default', name)).status.attempt <= before) throw new Error('it is the same attempt');
        await person.check('retried run');
        await person.shot('run-retried');
    });
}

async function cancelled(person, effects, report) {
    const { page } = person;
    let name;
    await report.step('a run that is under way shows where it is', async () => {
        name = await begin(person, { Name: 'to-cancel', 'Namespace of the second': ELSEWHERE, 'Seconds between them': '600' });
        await person.see(step(page, 'Write the first', 'completed'));
        await person.see(step(page, 'Wait', 'running'));
        await person.see(step(page, 'Write the second', 'pending'));
        await person.see(page.getByRole('log').getByText('waiting for 600 s'));
        if (await button(page, 'Retry').isVisible()) throw new Error('a run that is under way can be tried again');
        if (!await effects.get('configmap', 'team', 'to-cancel')) throw new Error('the first step is completed, and what it makes is not there');
        await person.check('running run');
        await person.shot('run-running');
    });
    await report.step('Cancel run ends it, and what it had made goes', async () => {
        await button(page, 'Cancel run').click();
        await person.see(page.getByRole('dialog').getByText(/configmap.*to-cancel/i));
        await person.check('cancel dialog');
        await confirm(page, name, 'Cancel run');
        await person.see(page.getByText('Cancelled', { exact: true }), 60_000);
        await effects.gone('configmap', 'team', 'to-cancel');
        if (await effects.get('configmap', ELSEWHERE, 'to-cancel')) throw new Error('a step after the cancelled one was taken');
        await button(page, 'Cancel run').waitFor({ state: 'hidden' });
        await person.check('cancelled run');
        await person.shot('run-cancelled');
    });
    await report.step('it can be begun again, and cancelled again', async () => {
        await button(page, 'Retry').click();
        await person.see(step(page, 'Wait', 'running'), 60_000);
        await button(page, 'Cancel run').click();
        await confirm(page, name, 'Cancel run');
        await effects.becomes('it is cancelled', async () => (await effects.get('voyage', 'default', name)).status.phase === 'Cancelled');
        await effects.gone('configmap', 'team', 'to-cancel');
        await person.check('cancelled again');
    });
}
