// What the API can answer instead of data: each time the page says what happened and what to do.

import { button, leaveConsole, listed } from './effects.mjs';

const LIST = /\/k8s\/clusters\/[^/]+\/apis\/argoproj\.io\/v1alpha1\/.*applications/;

/** What the banner says while a watch is interrupted. */
const LOST = /(connection (was|is) lost|interrupted|reconnecting|not live)/i;

const CASES = [
    [401, 'Unauthorized', /sign in/i],
    [403, 'Forbidden', /(not allowed|may not|permission|right)/i],
    [409, 'Conflict', /(changed|again|conflict)/i],
    [409, 'AlreadyExists', /another name/i],
    [429, 'TooManyRequests', /(too many|again|wait)/i],
    [500, 'InternalError', /(server|again|log)/i],
    [0, 'nothing', /(does not answer|connected)/i],
];

export async function refusals(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    for (const [status, reason, advice] of CASES) {
        await report.step(`an answer of ${status ? `${status} ${reason}` : 'nothing at all'} is explained`, async () => {
            person.tolerated = [/Failed to load resource/, /net::ERR/, /^500 /];
            await person.context.route(LIST, route => status === 0 ? route.abort('connectionrefused') : route.fulfill({
                status, contentType: 'application/json',
                body: JSON.stringify({ apiVersion: 'v1', kind: 'Status', status: 'Failure', code: status, reason, message: `refused by the test with ${status}` }),
            }));
            try {
                await person.open('/applications');
                const told = person.page.getByRole('alert').or(person.page.locator('.pf-v6-c-alert, .pf-v6-c-empty-state')).filter({ hasText: advice });
                await person.see(told, 15_000);
                await person.check(`refusal ${status}`);
            } finally {
                await person.context.unroute(LIST);
                person.tolerated = [];
            }
        });
    }
    await actions(person, report);
    await creation(person, report);
    await consoles(person, report);
    await report.step('a stream that is lost is told, and comes back', async () => {
        const watches = url => url.pathname.endsWith('/applications') && url.searchParams.get('watch') === 'true';
        // noVNC may still have something to say of the console before.
        person.tolerated = [/Failed to load resource/, /net::ERR/, /disconnected RFB/];
        await person.context.route(watches, route => route.abort('connectionreset'));
        const banner = person.page.getByText(LOST);
        try {
            await person.open('/applications', 'shop');
            await person.see(banner, 15_000);
        } finally {
            await person.context.unroute(watches);
        }
        await person.page.evaluate(() => dispatchEvent(new Event('online')));
        await banner.first().waitFor({ state: 'hidden', timeout: 30_000 });
        await person.check('lost stream');
        person.tolerated = [];
    });
    await person.context.close();
}

/** What the server says in place of what was asked for. */
function refuse(route, status, reason) {
    if (status === 0) return route.abort('connectionrefused');
    return route.fulfill({ status, contentType: 'application/json', body: JSON.stringify({ apiVersion: 'v1', kind: 'Status', status: 'Failure', code: status, reason, message: `refused by the test with ${status}` }) });
}

const alert = (page, advice) => page.locator('.pf-v6-c-alert.pf-m-danger').filter({ hasText: advice }).filter({ visible: true });

/** Things that are done: nothing says that they were, and the page can be used on. */
async function actions(person, report) {
    const { page } = person;
    const path = /\/namespaces\/openshift-gitops\/applications\/broken(\?|$)/;
    for (const [status, reason, advice] of CASES) {
        await report.step(`an action that is answered with ${status ? `${status} ${reason}` : 'nothing at all'} says so, and not that it was done`, async () => {
            person.tolerated = [/Failed to load resource/, /net::ERR/, /^500 /];
            await person.open('/applications/openshift-gitops/broken', 'Hard refresh');
            await page.route(path, route => (route.request().method() === 'PATCH' ? refuse(route, status, reason) : route.continue()));
            try {
                await button(page, 'Refresh').click();
                await person.see(alert(page, advice), 20_000);
                if (await page.getByText('Refresh requested').isVisible()) throw new Error('it says that it was done');
                await person.check(`refused action ${status}`);
            } finally {
                await page.unroute(path);
            }
            await button(page, 'Refresh').click();
            await person.see('Refresh requested: broken');
            await alert(page, advice).first().waitFor({ state: 'hidden' });
            person.tolerated = [];
        });
    }
}

/** Create: the answers are still there afterwards. */
async function creation(person, report) {
    const { page } = person;
    const path = /\/api\/scaffolder\/v2\/tasks(\?|$)/;
    await report.step('a run is prepared', async () => {
        await person.open('/create', 'Two notes');
        await page.getByRole('link', { name: 'Choose Two notes', exact: true }).click();
        await page.getByRole('textbox', { name: 'Name', exact: true }).fill('never-made');
        await page.getByRole('textbox', { name: 'Namespace of the second', exact: true }).fill('team');
        await button(page, 'Next').click();
        await person.see('Everything would be accepted', 30_000);
    });
    for (const [status, reason, advice] of CASES) {
        await report.step(`Create that is answered with ${status ? `${status} ${reason}` : 'nothing at all'} says so, and keeps the answers`, async () => {
            person.tolerated = [/Failed to load resource/, /net::ERR/, /^500 /];
            await page.route(path, route => refuse(route, status, reason));
            await button(page, 'Create').click();
            await person.see(alert(page, advice), 20_000);
            await person.see(page.getByText('never-made', { exact: true }));
            if (/voyages/.test(page.url())) throw new Error('the page went on as if there were a run');
            await person.check(`refused Create ${status}`);
            await page.unroute(path);
            person.tolerated = [];
        });
    }
}

/** A console of a machine that is said to run, and has none. */
async function consoles(person, report) {
    const { page } = person;
    const instances = /\/virtualmachineinstances\?/;
    for (const [type, kind] of [['serial', 'Serial console'], ['vnc', 'VNC console']]) {
        await report.step(`a console that the server refuses is told, and asked for again (${type})`, async () => {
            person.tolerated = [/WebSocket/, /Failed when connecting/, /Failed to load resource/, /disconnected RFB/];
            const one = { metadata: { name: 'stopped-1', namespace: 'team', uid: 'x' }, spec: {}, status: { phase: 'Running' } };
            await listed(page, instances, '/k8s/clusters/root/apis/kubevirt.io/v1/namespaces/team/virtualmachineinstances', items => [...items, one]);
            await person.open(`/machines/team/stopped-1?tab=console&type=${type}`, kind);
            await person.see(alert(page, 'The console could not be reached.'), 20_000);
            await person.see('press Ctrl+Alt+Shift together');
            await person.check(`refused console ${type}`);
            if (type === 'serial') {
                await page.locator('.xterm textarea').focus();
                await leaveConsole(page);
            }
            const [again] = await Promise.all([page.waitForEvent('websocket'), button(page, 'Connect again').click()]);
            if (!again.url().includes(type === 'vnc' ? '/vnc' : '/console')) throw new Error(again.url());
            // The second attempt must have come to nothing, too, before the next step: noVNC complains of it.
            await person.see(alert(page, 'The console could not be reached.'), 20_000);
            await page.unroute(instances);
            person.tolerated = [];
        });
    }
}
