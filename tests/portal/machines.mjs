// Buttons of machines, clicked by a person, with machines that run.

import { Effects, agree, button, confirm } from './effects.mjs';

const PLACE = 'herd';

export async function machines(browser, settings, report) {
    if (!settings.guest) return;
    const person = await browser.person();
    await person.signIn();
    const effects = new Effects(settings);
    await bulk(person, effects, report);
    await one(person, effects, report);
    await person.context.close();
}

const isPaused = instance => instance?.status?.conditions?.some(it => it.type === 'Paused' && it.status === 'True') ?? false;
const runs = instance => instance?.status?.phase === 'Running';

async function bulk(person, effects, report) {
    const { page } = person;
    const herd = ['herd-1', 'herd-2'];
    const all = async holds => (await Promise.all(herd.map(name => effects.get('vmi', PLACE, name)))).every(holds);
    const actions = page.getByRole('group', { name: 'Actions' });
    await report.step('several machines are started, paused, unpaused and stopped at once', async () => {
        await person.open(`/machines?namespace=${PLACE}&text=herd`, 'herd-1');
        await page.getByLabel('Select all shown').check();
        await person.see('Chosen: 2');
        for (const [action, what, holds] of [
            ['Start', 'both run', runs], ['Pause', 'both are paused', isPaused],
            ['Unpause', 'both go on', it => runs(it) && !isPaused(it)], ['Stop', 'both have stopped', it => !it],
        ]) {
            // Enabled as soon as the list shows that it is possible.
            if (action === 'Stop') await agree(page, button(actions, action), 'Stop', ...herd.map(name => `${PLACE}/${name}`));
            else await button(actions, action).click({ timeout: 30_000 });
            await effects.becomes(what, () => all(holds));
        }
        await person.check('bulk');
    });
    await report.step('several machines are moved to a folder at once', async () => {
        await person.open(`/machines?namespace=${PLACE}&text=herd`, 'herd-1');
        await page.getByLabel('Select all shown').check();
        await button(actions, 'Move to folder').click();
        const dialog = page.getByRole('dialog');
        await person.check('folder dialog');
        await dialog.getByLabel('Folder').fill('not a folder');
        await person.see('at most 63');
        await dialog.getByLabel('Folder').fill('kept');
        await button(dialog, 'Move to folder').click();
        const folder = async name => (await effects.get('vm', PLACE, name)).metadata.labels?.['vm.openshift.io/folder'];
        await effects.becomes('both are in it', async () => (await Promise.all(herd.map(folder))).every(it => it === 'kept'));
        await page.getByRole('navigation', { name: /^Machines by workspace/ }).getByRole('button', { name: 'kept (2)' }).click();
        await page.waitForURL(/folder=kept/);
        await person.check('folder');
        await person.shot('machines-folder');
    });
    await report.step('several machines are deleted after their number was typed', async () => {
        await person.open(`/machines?namespace=${PLACE}`, 'herd-1');
        for (const name of herd) await page.getByLabel(`Select ${name}`).check();
        await button(actions, 'Delete').click();
        for (const name of herd) await person.see(page.getByRole('dialog').getByText(`${PLACE}/${name}`));
        await person.see(page.getByRole('dialog').getByText('No disk is deleted with it.'));
        await person.check('delete machines');
        await person.shot('delete-machines');
        await confirm(page, '2 machines', 'Delete');
        for (const name of herd) await effects.gone('vm', PLACE, name);
        if (!await effects.get('vm', PLACE, 'worker')) throw new Error('one that was not chosen is gone, too');
        await person.check('bulk delete');
    });
}

async function one(person, effects, report) {
    const { page } = person;
    const path = `/machines/${PLACE}/worker`;
    const instance = () => effects.get('vmi', PLACE, 'worker');
    const machine = () => effects.get('vm', PLACE, 'worker');
    const click = name => button(page, name).click({ timeout: 60_000 });
    await report.step('Start starts a machine', async () => {
        await person.open(path, 'Stopped');
        await click('Start');
        await effects.becomes('it runs', async () => runs(await instance()), 60_000);
        await person.see(page.getByText('Running', { exact: true }));
    });
    await report.step('what it uses is drawn, goes on, and can be read as a table', async () => {
        await person.open(`${path}?tab=metrics`, '5 minutes');
        // The node measures every ten seconds, and the second time there is a difference.
        await page.locator('.fw-plot canvas').nth(2).waitFor({ timeout: 60_000 });
        await person.see(page.getByText(/CPU \d+ %, at most/));
        const rows = page.locator('.fw-figures tbody tr');
        const before = await rows.count();
        await page.waitForFunction(count => document.querySelectorAll('.fw-figures tbody tr').length > count, before, { timeout: 30_000 });
        await page.getByText('The same as a table').click();
        await person.see(page.getByRole('columnheader', { name: 'Written' }));
        await button(page, '1 hour').click();
        await page.waitForURL(/range=1h/);
        await person.see('means of minutes');
        await person.check('metrics');
        await person.shot('machine-metrics');
    });
    await report.step('Pause and Unpause', async () => {
        await person.open(path, 'Running');
        await click('Pause');
        await effects.becomes('it is paused', async () => isPaused(await instance()));
        await click('Unpause');
        await effects.becomes('it goes on', async () => !isPaused(await instance()));
        await person.check('pause');
    });
    await report.step('a snapshot is taken', async () => {
        await person.open(`${path}?tab=snapshots`, 'Take snapshot');
        await page.getByLabel('Name of the snapshot').fill('first');
        await click('Take snapshot');
        await effects.becomes('it can be used', async () => (await effects.get('vmsnapshot', PLACE, 'first'))?.status?.readyToUse, 60_000);
        await person.check('snapshot');
    });
    await report.step('Restart makes another instance', async () => {
        const before = (await instance()).metadata.uid;
        await click('Restart');
        await effects.becomes('another one runs', async () => { const now = await instance(); return runs(now) && now.metadata.uid !== before; }, 60_000);
    });
    await report.step('Stop stops it', async () => {
        await click('Stop');
        await effects.gone('vmi', PLACE, 'worker', 60_000);
        await person.see(page.getByText('Stopped', { exact: true }));
        await person.check('stop');
    });
    await report.step('Restore brings back what the snapshot has', async () => {
        const memory = async () => (await machine()).spec.template.spec.domain.memory.guest;
        await effects.kubectl('patch', 'vm', 'worker', '-n', PLACE, '--type=merge', '-p', '{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"160Mi"}}}}}}');
        await click('Restore');
        await confirm(page, 'worker', 'Restore');
        await effects.becomes('the restore is complete', async () => (await effects.list('vmrestore', PLACE))[0]?.status?.complete, 60_000);
        await effects.becomes('the machine is as it was', async () => await memory() === '128Mi');
        await person.see(page.getByText('Succeeded', { exact: true }));
        await person.check('restore');
        await person.shot('restored');
    });
    await report.step('a snapshot is deleted', async () => {
        await page.getByRole('listitem').filter({ hasText: 'Ready' }).getByRole('button', { name: 'Delete', exact: true }).click();
        await confirm(page, 'first', 'Delete');
        await effects.gone('vmsnapshot', PLACE, 'first');
    });
    await report.step('a machine is deleted after its name was typed', async () => {
        await person.open(path, 'Stopped');
        await click('Delete');
        await confirm(page, 'worker', 'Delete');
        await page.waitForURL(/\/machines$/);
        await effects.gone('vm', PLACE, 'worker', 60_000);
        await person.check('deleted');
    });
}
