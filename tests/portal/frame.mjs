// The frame around every page: what tabs are called, where the focus goes, light and dark, other workspaces, the bell, and a page that fails.

import { button, listed } from './effects.mjs';

const APIS = '/k8s/clusters/root/apis';

export async function frame(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    await arrival(person, report);
    await masthead(person, settings, report);
    await failures(person, report);
    await migration(person, report);
    await person.context.close();
}

async function titled(page, title) {
    await page.waitForFunction(wanted => document.title === wanted, title, { timeout: 10_000 }).catch(async () => { throw new Error(`the tab is called “${await page.title()}”, not “${title}”`); });
}

async function arrival(person, report) {
    const { page } = person;
    for (const [path, title] of [
        ['/home', 'Home · Fairway'], ['/applications', 'Applications · Fairway'], ['/applications/openshift-gitops/shop', 'shop · Applications · Fairway'], ['/machines/team/stopped-1', 'stopped-1 · VirtualMachines · Fairway'],
        ['/repositories/root/shop/pulls/1', '#1 More replicas · Repositories · Fairway'], ['/gateways/httproutes/team/nowhere', 'nowhere · Gateways and APIs · Fairway'],
    ]) {
        await report.step(`the tab of ${path} is called “${title}”`, async () => {
            await person.open(path);
            await titled(page, title);
            await person.see(page.getByRole('heading', { level: 1 }));
            const count = await page.getByRole('heading', { level: 1 }).count();
            if (count !== 1) throw new Error(`the page has ${count} headings of the first level`);
        });
    }
    await report.step('another page has the focus, and is told to who does not see it', async () => {
        await person.open('/machines', 'stopped-1');
        const before = await page.evaluate(() => document.activeElement.tagName);
        if (before !== 'BODY') throw new Error(`the first page moved the focus to ${before}`);
        await page.getByRole('link', { name: 'stopped-1', exact: true }).click();
        await titled(page, 'stopped-1 · VirtualMachines · Fairway');
        await page.waitForFunction(() => document.activeElement.id === 'main');
        await page.getByTestId('arrival').getByText('stopped-1 · VirtualMachines · Fairway').waitFor({ state: 'attached' });
        // A tab of the page is no other page: the focus stays on it.
        await page.getByRole('tab', { name: 'Configuration' }).click();
        await page.waitForURL(/tab=configuration/);
        if (await page.evaluate(() => document.activeElement.id === 'main')) throw new Error('a tab moved the focus to the beginning');
        await person.check('arrival');
    });
}

async function masthead(person, settings, report) {
    const { page } = person;
    const isDark = () => page.evaluate(() => document.documentElement.classList.contains('pf-v6-theme-dark'));
    await report.step('dark is chosen, stays after a reload, and can be taken back', async () => {
        await person.open('/home', 'Needs attention');
        for (const [choice, dark] of [['Dark', true], ['Light', false]]) {
            await page.getByRole('button', { name: /^Light or dark/ }).click();
            await person.check(`choice of ${choice}`);
            await page.getByRole('menuitem', { name: choice, exact: true }).click();
            if (await isDark() !== dark) throw new Error(`${choice} was chosen, and dark is ${!dark}`);
            await page.reload();
            await person.see('Needs attention');
            if (await isDark() !== dark) throw new Error(`after a reload it is no longer ${choice}`);
        }
    });
    await report.step('another workspace is chosen, and the page is that of the other one', async () => {
        await person.open('/applications', 'shop');
        await button(page, 'Workspace: root').click();
        await person.see(page.getByRole('menuitem', { name: settings.many, exact: true }));
        await person.check('workspaces');
        await page.getByRole('menuitem', { name: settings.many, exact: true }).click();
        await page.waitForURL(new RegExp(`/w/${settings.many}/applications`));
        await person.see('many-0000');
        await button(page, `Workspace: ${settings.many}`).click();
        await page.getByRole('menuitem', { name: /root$/ }).click();
        await page.waitForURL(/\/w\/root\/applications/);
        await person.see('shop');
    });
    await report.step('the bell keeps what was told', async () => {
        await button(page, 'Notifications').click();
        await person.see('No notifications.');
        await page.keyboard.press('Escape');
        await person.open('/applications?text=broken', 'broken');
        await button(page, 'Refresh broken').click();
        await person.see(page.locator('.pf-v6-c-alert-group.pf-m-toast').getByText('Refresh requested: broken'));
        await button(page, 'Notifications').click();
        await person.see(page.locator('.fw-notifications').getByText('Refresh requested: broken'));
        await person.check('bell');
    });
}

async function failures(person, report) {
    const { page } = person;
    await report.step('a page that fails says so, and takes nothing else with it', async () => {
        const list = /\/api\/catalog\/entities\/by-query/;
        // An answer as no server of ours gives it: the page cannot draw it.
        await page.route(list, route => route.fulfill({ status: 200, contentType: 'application/json', body: '{"items":[{"kind":"Component"}],"totalItems":1,"pageInfo":{}}' }));
        person.tolerated = [/exception|console|Error/];
        await person.open('/catalog?kind=all', 'This page has failed');
        await person.see(page.getByRole('heading', { level: 1, name: 'This page has failed' }));
        await person.see(button(page, 'Reload'));
        await person.check('failed page');
        await person.shot('page-failed');
        await page.unroute(list);
        await page.getByRole('link', { name: 'VirtualMachines', exact: true }).click();
        await person.see('stopped-1');
        person.complaints = [];
        person.tolerated = [];
    });
    await report.step('what cannot be read has a heading, and a tab that names it', async () => {
        const machine = /\/virtualmachines\?/;
        person.tolerated = [/Failed to load resource/, /^500 /];
        await page.route(machine, route => route.fulfill({ status: 500, contentType: 'application/json', body: JSON.stringify({ kind: 'Status', status: 'Failure', code: 500, message: 'refused by the test' }) }));
        await person.open('/machines/team/stopped-1');
        await person.see(page.getByRole('heading', { level: 1, name: 'This could not be read' }));
        await titled(page, 'stopped-1 · VirtualMachines · Fairway');
        await person.check('unreadable machine');
        await page.unroute(machine);
        person.tolerated = [];
    });
    await report.step('a tree that cannot be read anew stays, and is marked', async () => {
        const tree = /\/applications\/shop\/tree$/;
        await person.open('/applications/openshift-gitops/shop', 'settings');
        await person.see(page.getByRole('region', { name: 'Objects of shop' }).getByText(/Service · Healthy/));
        person.tolerated = [/Failed to load resource/, /^500 /];
        await page.route(tree, route => route.fulfill({ status: 500, contentType: 'application/json', body: JSON.stringify({ message: 'no tree today' }) }));
        await person.see('This could not be refreshed and may be out of date: no tree today', 30_000);
        await person.see(page.getByRole('region', { name: 'Objects of shop' }).getByText(/Service · Healthy/));
        await person.check('old tree');
        await page.unroute(tree);
        await page.getByText('no tree today').first().waitFor({ state: 'hidden', timeout: 30_000 });
        person.tolerated = [];
    });
    await report.step('who cannot look at migrations does not read that there are none', async () => {
        person.tolerated = [/Failed to load resource/];
        const migrations = /\/virtualmachineinstancemigrations\?/;
        await page.route(migrations, route => route.fulfill({ status: 403, contentType: 'application/json', body: JSON.stringify({ kind: 'Status', status: 'Failure', code: 403, message: 'no right to see migrations' }) }));
        await person.open('/machines/team/stopped-1', 'Stopped');
        await person.see('Migrations could not be read: no right to see migrations');
        await page.unroute(migrations);
        person.tolerated = [];
    });
}

/** A machine that moves, as the server tells of one where there are two nodes. */
async function migration(person, report) {
    const { page } = person;
    await report.step('a migration shows how far it is, and can be cancelled', async () => {
        const list = /\/namespaces\/team\/virtualmachineinstancemigrations(\/moving)?(\?|$)/;
        let isCancelled = false;
        await page.route(list, route => {
            if (route.request().method() !== 'DELETE') return route.fallback();
            isCancelled = true;
            return route.fulfill({ status: 200, contentType: 'application/json', body: '{"kind":"Status","status":"Success"}' });
        });
        const moving = { metadata: { name: 'moving', namespace: 'team', uid: 'moving', creationTimestamp: new Date().toISOString() }, spec: { vmiName: 'stopped-1' }, status: { phase: 'Scheduled', migrationState: { sourceNode: 'one', targetNode: 'two' } } };
        await listed(page, list, `${APIS}/kubevirt.io/v1/namespaces/team/virtualmachineinstancemigrations`, items => [...items, moving]);
        await person.open('/machines/team/stopped-1', 'Migration of stopped-1');
        const bar = page.getByRole('progressbar');
        await person.see(page.getByText('Scheduled, one → two'));
        if (await bar.getAttribute('aria-valuenow') !== '33') throw new Error(`it is at ${await bar.getAttribute('aria-valuenow')}`);
        await person.check('migration');
        await person.shot('migration');
        await button(page, 'Cancel the migration').click();
        await person.see(page.locator('.pf-v6-c-alert-group.pf-m-toast').getByText('Cancellation of the migration requested: stopped-1'));
        if (!isCancelled) throw new Error('nothing was asked of the server');
        await page.unroute(list);
    });
}
