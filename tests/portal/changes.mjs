// Buttons that change things, clicked by a person; what became of it is asked with kubectl. Machines have a file of their own.

import { Effects, agree, ask, button, confirm, entry } from './effects.mjs';

const GITOPS = 'openshift-gitops';
const PULLS = '/api/gitea/v1/repos/root/shop/pulls';

export async function changes(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    const effects = new Effects(settings);
    await applications(person, effects, report);
    await editor(person, effects, report);
    await keys(person, effects, report);
    await workspaces(person, effects, report);
    await members(person, effects, report);
    await signOut(person, effects, report);
    await person.context.close();
}

async function applications(person, effects, report) {
    const { page } = person;
    const app = name => effects.get('application.argoproj.io', GITOPS, name);
    const replicas = async namespace => (await effects.get('configmap', namespace, 'settings'))?.data.replicas;
    const open = name => person.open(`/applications/${GITOPS}/${name}`, name);
    const sync = async (name, prune = false) => {
        await open(name);
        await button(page, 'Sync').click();
        const dialog = page.getByRole('dialog');
        await dialog.waitFor();
        await person.check('sync dialog');
        const go = dialog.getByRole('button', { name: 'Sync', exact: true });
        if (prune) {
            await dialog.getByLabel(/^Prune/).check();
            await person.see(dialog.getByText('Prune deletes what Git no longer has'));
            if (await go.isEnabled()) throw new Error('something is pruned without asking for a name');
            await dialog.getByLabel(`Type ${name} to confirm`).fill(name);
        }
        await go.click();
        await dialog.waitFor({ state: 'hidden' });
    };

    await report.step('Sync writes what Git has', async () => {
        if (await replicas('waiting')) throw new Error('it was synced before anybody asked');
        await sync('waiting');
        await effects.becomes('its objects are there', async () => await replicas('waiting') === '1');
        await person.see(page.getByText('Synced', { exact: true }));
        await sync('guarded');
        await effects.becomes('the precious machine is there', () => effects.get('vm', 'guarded', 'precious'));
        await person.check('sync');
    });
    for (const name of ['Refresh', 'Hard refresh']) {
        await report.step(`${name} has the Application compared anew`, async () => {
            await open('broken');
            const before = (await app('broken')).status.reconciledAt;
            await page.waitForTimeout(1_100); // Times have whole seconds.
            await button(page, name).click();
            await person.see(page.locator('.pf-v6-c-alert-group.pf-m-toast').getByText('Refresh requested: broken'));
            await effects.becomes('it was compared later', async () => {
                const now = await app('broken');
                return now.status.reconciledAt > before && !now.metadata.annotations?.['argocd.argoproj.io/refresh'];
            });
            await person.check(name);
        });
    }
    await report.step('a tile has Sync and Refresh', async () => {
        await person.open('/applications?text=broken', 'broken');
        await button(page, 'Sync broken').click();
        await person.see(page.getByRole('dialog').getByLabel(/^Prune/));
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'hidden' });
        const before = (await app('broken')).status.reconciledAt;
        await page.waitForTimeout(1_100);
        await button(page, 'Refresh broken').click();
        await effects.becomes('it was compared later', async () => (await app('broken')).status.reconciledAt > before);
        await person.check('tile');
    });
    await report.step('a pull request is made, and merged', async () => {
        await person.open('/repositories/root/shop?tab=pulls', 'Create pull request');
        await page.getByLabel('Branch to merge').selectOption('next');
        await page.getByLabel('Title').fill('Five, without the machine');
        await person.check('propose');
        await button(page, 'Create pull request').click();
        await page.waitForURL(/\/pulls\/\d+$/);
        const number = Number(page.url().split('/').pop());
        const made = (await ask(page, `${PULLS}/${number}`)).body;
        if (made.head.ref !== 'next' || made.base.ref !== 'main' || made.title !== 'Five, without the machine') throw new Error(JSON.stringify(made));
        await person.see('Computed by Fairway now', 60_000);
        await button(page, 'Merge').click();
        await confirm(page, 'main', 'Merge');
        await person.see(page.getByText('Merged', { exact: true }));
        if (!(await ask(page, `${PULLS}/${number}`)).body.merged) throw new Error('the page says Merged, and the Git host does not');
        await effects.becomes('the Application that follows main has it', async () => await replicas('shop') === '5');
        if (await replicas('waiting') !== '1') throw new Error('an Application that nobody syncs followed, too');
        await person.check('merge');
    });
    for (const [how, action] of [['squash', 'Squash and merge'], ['rebase', 'Rebase and merge']]) {
        await report.step(`${action} is asked for by its name, and done`, async () => {
            const number = await page.evaluate(async ([branch, path]) => {
                const { csrf } = await (await fetch('/auth/session')).json();
                const send = async (where, body) => {
                    const answer = await fetch(where, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Fairway-CSRF': csrf }, body: JSON.stringify(body) });
                    if (!answer.ok) throw new Error(`${where} is answered with ${answer.status}: ${await answer.text()}`);
                    return answer.json();
                };
                for (const at of [1, 2]) await send(`${path.replace(/pulls$/, 'contents')}/${branch}-${at}.txt`, { content: btoa(branch), message: `${branch} ${at}`, ...(at === 1 ? { branch: 'main', new_branch: branch } : { branch }) });
                return (await send(path, { title: `By ${branch}`, head: branch, base: 'main', body: '' })).number;
            }, [how, PULLS]);
            await person.open(`/repositories/root/shop/pulls/${number}`, `By ${how}`);
            await button(page, action).click();
            await person.see(page.getByRole('dialog').getByText(`${action} into main?`));
            await person.check(`${how} dialog`);
            await confirm(page, 'main', action);
            await person.see(page.getByText('Merged', { exact: true }));
            const commits = (await ask(page, `${PULLS.replace(/pulls$/, 'commits')}?sha=main&limit=2`)).body;
            if (commits[0].parents.length !== 1) throw new Error('there is a merge commit');
            const isOne = !commits[1].commit.message.startsWith(how);
            if (isOne !== (how === 'squash')) throw new Error(`commits are ${commits.map(it => it.commit.message).join(' | ')}`);
            await person.check(how);
        });
    }
    await report.step('a pull request is closed, opened again and closed', async () => {
        await person.open('/repositories/root/shop/pulls/1', 'More replicas');
        // Both have changed the same line meanwhile.
        await person.see('larger cannot be merged into main');
        const state = async () => (await ask(page, `${PULLS}/1`)).body;
        const close = async () => {
            await agree(page, button(page, 'Close pull request'), 'Close pull request', 'More replicas');
            await person.see(page.getByText('Closed', { exact: true }));
            const now = await state();
            if (now.state !== 'closed' || now.merged) throw new Error(JSON.stringify(now));
        };
        await close();
        await button(page, 'Reopen pull request').click();
        await person.see(page.getByText('Open', { exact: true }));
        if ((await state()).state !== 'open') throw new Error(JSON.stringify(await state()));
        await close();
        await person.check('closed');
    });
    await report.step('Rollback brings an older state back', async () => {
        await sync('waiting');
        await effects.becomes('the new state is there', async () => await replicas('waiting') === '5');
        await effects.becomes('there are two states to choose from', async () => (await app('waiting')).status.history?.length === 2);
        await person.open(`/applications/${GITOPS}/waiting?tab=history`);
        await button(page, 'Rollback').click();
        await confirm(page, 'waiting', 'Rollback');
        await effects.becomes('the old state is back', async () => await replicas('waiting') === '1');
        await person.check('rollback');
    });
    await report.step('an Application that syncs by itself is rolled back after auto-sync is disabled, and follows Git again when it is enabled', async () => {
        const automated = async () => (await app('shop')).spec.syncPolicy.automated;
        await person.open(`/applications/${GITOPS}/shop?tab=history`, 'it cannot be rolled back');
        const oldest = button(page, 'Rollback').last();
        if (await oldest.isEnabled()) throw new Error('a rollback is offered that the server refuses');
        await person.check('rollback refused');
        await button(page, 'Disable Auto-Sync').click();
        await effects.becomes('it no longer syncs by itself', async () => (await automated()).enabled === false);
        await oldest.click({ timeout: 30_000 });
        await confirm(page, 'shop', 'Rollback');
        await effects.becomes('the old state is back', async () => await replicas('shop') === '1');
        await person.open(`/applications/${GITOPS}/shop?tab=summary`, 'Auto-sync');
        await button(page, 'Enable Auto-Sync').click({ timeout: 30_000 });
        const now = await effects.becomes('it syncs by itself', async () => { const it = await automated(); return it.enabled !== false && it; });
        if (!now.prune || !now.selfHeal) throw new Error(`what was automated is lost: ${JSON.stringify(now)}`);
        await effects.becomes('it has what Git has', async () => await replicas('shop') === '5', 60_000);
        await person.check('auto-sync');
    });
    await report.step('deletions that the guard holds back wait for an approval', async () => {
        await sync('guarded', true);
        const approve = await person.see(button(page, 'Approve deletions'));
        await person.check('approval');
        await person.shot('approval');
        await person.open('/home');
        await person.see(entry(page, 'guarded').getByText('Waits for approval', { exact: true }));
        await open('guarded');
        if (!await effects.get('vm', 'guarded', 'precious')) throw new Error('it was deleted before anybody approved');
        await approve.click();
        await person.see(page.getByRole('dialog').getByText('What the guard holds back is deleted'));
        await confirm(page, 'guarded', 'Approve deletions');
        await effects.gone('vm', 'guarded', 'precious');
        if (!await effects.get('configmap', 'guarded', 'beside')) throw new Error('more was deleted than was approved');
    });
    await report.step('an Application is deleted with its objects, as its dialog says', async () => {
        await open('waiting');
        await button(page, 'Delete').click();
        await person.see(page.getByRole('dialog').getByText('ConfigMap waiting settings'));
        await confirm(page, 'waiting', 'Delete');
        await page.waitForURL(/\/applications$/);
        await effects.gone('application.argoproj.io', GITOPS, 'waiting');
        await effects.gone('configmap', 'waiting', 'settings');
        await person.check('deleted');
    });
}

async function editor(person, effects, report) {
    const { page } = person;
    const labels = async () => (await effects.get('vm', 'team', 'stopped-2')).metadata.labels;
    const text = page.getByLabel('The machine as YAML');
    const edit = async (from, to) => {
        const before = await text.inputValue();
        if (!before.includes(from)) throw new Error(`there is no ${from} in it`);
        await text.fill(before.replace(from, to));
    };
    await report.step('YAML is saved', async () => {
        await person.open('/machines/team/stopped-2?tab=yaml', 'YAML');
        await text.waitFor();
        await edit('vm.openshift.io/folder: web', 'vm.openshift.io/folder: saved');
        await button(page, 'Save').click();
        await effects.becomes('the machine is in another folder', async () => (await labels())['vm.openshift.io/folder'] === 'saved');
        await effects.becomes('the page shows that', async () => await button(page, 'Save').isDisabled() && (await text.inputValue()).includes('folder: saved'));
        await person.check('saved');
    });
    await report.step('YAML that somebody else has changed meanwhile is not overwritten, and it is said', async () => {
        await edit('vm.openshift.io/folder: saved', 'vm.openshift.io/folder: mine');
        await effects.kubectl('label', 'vm', 'stopped-2', '-n', 'team', 'vm.openshift.io/folder=theirs', '--overwrite');
        await person.see('The machine was changed meanwhile.');
        person.tolerated = [/409/];
        await button(page, 'Save').click();
        await person.see(page.locator('.pf-v6-c-alert.pf-m-danger').filter({ hasText: 'Somebody has changed it meanwhile' }));
        await person.check('conflict');
        await person.shot('conflict');
        person.tolerated = [];
        if (!(await text.inputValue()).includes('folder: mine')) throw new Error('what was written is lost');
        if ((await labels())['vm.openshift.io/folder'] !== 'theirs') throw new Error('their change is lost');
        // Nor is it when the version is taken out by hand.
        await edit(/\n *resourceVersion:.*/.exec(await text.inputValue())[0], '');
        person.tolerated = [/409/];
        await Promise.all([page.waitForResponse(answer => answer.request().method() === 'PUT' && answer.status() === 409), button(page, 'Save').click()]);
        await page.waitForTimeout(200);
        person.tolerated = [];
        if ((await labels())['vm.openshift.io/folder'] !== 'theirs') throw new Error('their change is lost');
        await button(page, 'Reload').click();
        if (!(await text.inputValue()).includes('folder: theirs')) throw new Error('after Reload the page does not show their change');
    });
    for (const [what, written, told] of [['nothing', '', 'This is not a VirtualMachine'], ['no YAML', 'a: [', 'This is not YAML'], ['no machine', '- 1', 'This is not a VirtualMachine']]) {
        await report.step(`${what} is not saved, and the page says why`, async () => {
            await text.fill(written);
            await button(page, 'Save').click();
            await person.see(page.locator('.pf-v6-c-alert.pf-m-danger').filter({ hasText: told }));
            await button(page, 'Reload').click();
            await person.check(what);
        });
    }
}

async function keys(person, effects, report) {
    const { page } = person;
    await report.step('home has the requests for keys that wait for whoever looks at it', async () => {
        await person.open('/home');
        await person.see(entry(page, 'alice asks for gold: to see it').getByText('Waits for approval', { exact: true }));
        await entry(page, 'alice asks for gold: to see it').getByRole('link').click();
        await page.waitForURL(/\/gateways\?tab=keys$/);
        await person.see(page.getByRole('table', { name: 'Requests for keys' }).getByText('to see it'));
    });
    const condition = async (name, type) => (await effects.get('apikey', 'default', name))?.status?.conditions?.some(it => it.type === type && it.status === 'True');
    for (const [name, use, action, type] of [['good', 'to be approved', 'Approve', 'Approved'], ['bad', 'to be rejected', 'Reject', 'Denied']]) {
        await report.step(`a key is requested; ${action} makes it ${type}`, async () => {
            await person.open('/gateways?tab=products', 'The API');
            await button(page, 'Request a key').first().click();
            const dialog = page.getByRole('dialog');
            await dialog.getByLabel('Name of the key').fill(name);
            // Beside the product, unless something else is chosen.
            await dialog.getByLabel('In which namespace').selectOption('default');
            if (await button(dialog, 'Send request').isEnabled()) throw new Error('a key can be asked for without saying what it is for');
            await dialog.getByLabel('What it is for').fill(use);
            await person.check('request a key');
            await button(dialog, 'Send request').click();
            await dialog.waitFor({ state: 'hidden' });
            const made = await effects.becomes('the key is asked for', () => effects.get('apikey', 'default', name));
            if (made.spec.useCase !== use || made.spec.planTier !== 'gold' || made.spec.requestedBy.userId !== 'root/admin') throw new Error(JSON.stringify(made.spec));
            await person.open('/gateways?tab=keys', use);
            if (action === 'Reject') await agree(page, button(entry(page, use), action), action, use);
            else await button(entry(page, use), action).click();
            await effects.becomes(`it is ${type}`, () => condition(name, type));
            await entry(page, use).waitFor({ state: 'hidden' });
            await person.see(entry(page, `default/${name}`).getByText(type, { exact: true }));
            await person.check(action);
        });
    }
    await report.step('a key is deleted, with its Secret', async () => {
        const secret = (await effects.get('apikey', 'default', 'good')).status.secretRef.name;
        if (!await effects.get('secret', 'default', secret)) throw new Error('an approved key has no Secret');
        await button(entry(page, 'default/good'), 'Delete key').click();
        await confirm(page, 'good', 'Delete key');
        await effects.gone('apikey', 'default', 'good');
        await effects.gone('secret', 'default', secret);
    });
}

async function workspaces(person, effects, report) {
    const { page } = person;
    await report.step('a workspace is made, and deleted', async () => {
        await person.open('/workspaces', 'acme');
        await page.getByLabel('Name', { exact: true }).fill('passing');
        await button(page, 'Create workspace').click();
        await effects.becomes('the workspace is ready', async () => (await effects.get('workspace.tenancy.kcp.io', '', 'passing'))?.status?.phase === 'Ready');
        await person.see(entry(page, 'passing').getByText('Ready', { exact: true }));
        await button(entry(page, 'passing'), 'Delete').click();
        await person.see(page.getByRole('dialog').getByRole('region', { name: 'What is in it' }).getByText('none').first());
        await person.check('delete workspace');
        await confirm(page, 'passing', 'Delete');
        await effects.gone('workspace.tenancy.kcp.io', '', 'passing');
        await entry(page, 'passing').waitFor({ state: 'hidden' });
        await person.check('workspace');
    });
    await report.step('a member is added, and removed', async () => {
        const bound = async () => (await effects.list('clusterrolebinding')).find(it => it.subjects?.some(subject => subject.name === 'root/bob'));
        await person.open('/workspaces?tab=members', 'Add member');
        await page.getByLabel(/^Name, such as/).fill('root/bob');
        await page.getByLabel('Role').selectOption('edit');
        await button(page, 'Add member').click();
        const { roleRef } = await effects.becomes('a role is bound', bound);
        if (roleRef.name !== 'edit') throw new Error(JSON.stringify(roleRef));
        await button(entry(page, 'root/bob'), 'Remove').click();
        await confirm(page, 'root/bob', 'Remove');
        await effects.becomes('no role is bound', async () => !await bound());
        await person.check('member');
    });
}

async function members(person, effects, report) {
    const { page } = person;
    const subjects = async () => (await effects.get('rolebinding', 'team', 'pair'))?.subjects?.map(it => it.name).sort();
    await report.step('one of two who share a role in a namespace loses it, the other does not', async () => {
        await effects.kubectl('create', 'rolebinding', 'pair', '-n', 'team', '--clusterrole=view', '--user=root/carol', '--user=root/dave');
        await person.open('/workspaces?tab=members', 'root/carol');
        await person.see(entry(page, 'root/carol').getByText('in the namespace team'));
        await button(entry(page, 'root/carol'), 'Remove').click();
        await confirm(page, 'root/carol', 'Remove');
        await effects.becomes('carol is out', async () => JSON.stringify(await subjects()) === '["root/dave"]');
        await entry(page, 'root/carol').waitFor({ state: 'hidden' });
        await button(entry(page, 'root/dave'), 'Remove').click();
        await confirm(page, 'root/dave', 'Remove');
        await effects.gone('rolebinding', 'team', 'pair');
        await person.check('shared binding');
    });
    await report.step('what was refused is in the activity', async () => {
        person.tolerated = [/404/];
        await page.evaluate(async () => {
            const { csrf } = await (await fetch('/auth/session')).json();
            await fetch('/k8s/clusters/root/api/v1/namespaces/team/configmaps/never-there', { method: 'DELETE', headers: { 'X-Fairway-CSRF': csrf } });
        });
        person.tolerated = [];
        await person.open('/activity?refused=1');
        await effects.becomes('the refusal is told', () => page.getByText('configmaps team/never-there').first().isVisible());
        const codes = await page.getByRole('row').filter({ hasText: /^(?!.*When)/ }).getByText(/^\d{3}$/).allTextContents();
        if (codes.length === 0 || codes.some(code => Number(code) < 400)) throw new Error(`codes ${codes.join(', ')}`);
        await person.check('refused');
        await person.shot('activity-refused');
    });
}

async function signOut(person, effects, report) {
    const { page, settings } = person;
    await report.step('Sign out ends the session, also for whoever has kept its cookie', async () => {
        await person.open('/home', 'Home');
        const kept = await person.context.cookies();
        if ((await ask(page, '/auth/session')).status !== 200) throw new Error('nobody was signed in');
        person.tolerated = [/401/];
        await page.getByRole('button', { name: /^Account of/ }).click();
        await page.getByRole('menuitem', { name: 'Sign out' }).click();
        await page.waitForURL(url => url.href.startsWith(settings.portal.replace('//portal.', '//id.')), { timeout: 20_000 });
        // The sign-in at the provider has ended, too: it asks for a password.
        await person.see(page.locator('#password'));
        await person.context.addCookies(kept);
        const answer = await person.context.request.get(`${settings.portal.replace(/\/\/[^:]+/, '//127.0.0.1')}/auth/session`, {
            headers: { Host: new URL(settings.portal).host, Cookie: kept.map(it => `${it.name}=${it.value}`).join('; ') },
        });
        if (answer.status() !== 401) throw new Error(`the old cookie is answered with ${answer.status()}`);
        await person.check('signed out');
    });
}
