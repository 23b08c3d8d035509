// Texts of strangers stay texts: titles, labels, file names, commits, messages of conditions, lines of logs. And pages of strangers get nothing
// of the portal: they cannot show it as a part of theirs, and what they have a browser send changes nothing.

import { headersOf } from './browser.mjs';
import { ask } from './effects.mjs';

const PLACES = [
    ['/catalog', '<img src=x onerror=alert'],
    ['/applications/openshift-gitops/shop', 'settings'],
    ['/machines/team/stopped-1?tab=overview', '<img src=x onerror=alert'],
    ['/machines/team/stopped-1?tab=yaml', 'onerror'],
    ['/repositories/root/shop', '<img src=x onerror=alert(1)>.txt'],
    ['/repositories/root/shop?tab=commits', '<script>alert('],
    [`/repositories/root/shop?path=${encodeURIComponent('<img src=x onerror=alert(1)>.txt')}`, '<script>alert(3)</script>'],
    ['/gateways?tab=products', '<img src=x onerror=alert'],
];

const TEXT = "<img src=x onerror=alert('object')><script>alert('object')</script>";
const AT = '2026-01-01T00:00:00Z';

/** What a run is made of, all of it written by strangers. */
const RUN = {
    metadata: { name: 'hostile', namespace: 'default', uid: 'hostile', creationTimestamp: AT },
    spec: { template: 'template:default/virtual-machine', values: { name: TEXT }, requestedBy: { username: TEXT } },
    status: {
        phase: 'Succeeded', startedAt: AT, endedAt: AT, message: TEXT,
        steps: [{ id: 'step', name: TEXT, action: TEXT, state: 'completed', startedAt: AT, endedAt: AT, log: [{ at: AT, text: `log ${TEXT}` }], made: [{ title: TEXT }] }],
        output: { links: [{ title: TEXT, url: "javascript:alert('link')" }], text: [{ title: TEXT, content: TEXT }] },
    },
};

/** Elements that came out of a text, and links that would run one. */
const made = page => page.evaluate(() => document.querySelectorAll('img[src="x"], script:not([src]):not([type]), a[href^="javascript:" i]').length);

async function objects(person, report) {
    const { page } = person;
    /** Objects of the test in place of the server's first answer; its version is the real one's, so that the watch goes on from there. */
    const instead = async (path, change, look) => {
        const { body } = await ask(page, `/k8s/clusters/root${path}`);
        const collection = new URL(path, 'https://x').pathname.split('/').at(-1);
        // Pages are called as collections are.
        const answers = url => url.pathname.startsWith('/k8s/') && url.pathname.endsWith(`/${collection}`) && url.searchParams.get('watch') !== 'true';
        await page.route(answers, route => route.fulfill({ contentType: 'application/json', body: JSON.stringify({ ...body, metadata: { resourceVersion: body.metadata.resourceVersion }, items: change(body.items) }) }));
        try {
            await look();
        } finally {
            await page.unroute(answers);
        }
    };
    const application = app => ({
        ...app, status: { ...app.status, conditions: [{ type: 'ComparisonError', message: `condition ${TEXT}`, lastTransitionTime: AT }], operationState: { phase: 'Failed', message: `operation ${TEXT}`, finishedAt: AT } },
    });
    const run = () => [RUN];
    for (const [what, list, change, path, sign] of [
        ['a condition', '/apis/argoproj.io/v1alpha1/applications?fieldSelector=metadata.name%3Dbroken', items => items.map(application), '/applications/openshift-gitops/broken?tab=summary', 'condition <img src=x'],
        ['what needs attention', '/apis/argoproj.io/v1alpha1/applications?fieldSelector=metadata.name%3Dbroken', items => items.map(application), '/home', 'condition <img src=x'],
        ['the log of a run', '/apis/fairway.dev/v1alpha1/voyages?limit=1', run, '/voyages/default/hostile', 'log <img src=x'],
        ['the list of runs', '/apis/fairway.dev/v1alpha1/voyages?limit=1', run, '/voyages', '<img src=x'],
    ]) {
        await report.step(`a stranger's text stays a text in ${what}`, () => instead(list, change, async () => {
            await person.open(path, sign);
            await person.check(what);
            if (await made(page) > 0) throw new Error('an element came out of a text');
        }));
    }
}

/** Pages of somebody else: of another site, and of another name below ours, whose requests have the cookies of the portal. */
async function elsewhere(person, report) {
    const { page, context, settings } = person;
    const places = ['https://evil.example', settings.portal.replace('//portal.', '//git.')];
    const collection = '/k8s/clusters/root/api/v1/namespaces/default/configmaps';
    for (const [at, place] of places.entries()) {
        const address = `${place}/fairway-test.html`;
        await context.route(address, route => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>Elsewhere</title><p>Elsewhere</p>' }));
        await report.step(`a page of ${place} cannot show the portal as a part of itself`, async () => {
            person.tolerated = [/frame|Failed to load resource|net::ERR/i];
            await page.goto(address);
            await page.evaluate(portal => new Promise(resolve => {
                const frame = document.createElement('iframe');
                frame.addEventListener('load', resolve);
                frame.src = `${portal}/home`;
                document.body.append(frame);
                setTimeout(resolve, 5_000);
            }), settings.portal);
            await page.waitForTimeout(500);
            const shown = page.frames().filter(frame => frame !== page.mainFrame());
            if (shown.length !== 1) throw new Error(`${shown.length} frames`);
            const text = await shown[0].evaluate(() => document.body?.innerText ?? '').catch(() => '');
            if (shown[0].url().startsWith(settings.portal) || /Home|Needs attention|Sign in/.test(text)) throw new Error(`the frame shows ${shown[0].url()}: ${text.slice(0, 200)}`);
            person.complaints = [];
            person.tolerated = [];
        });
        await report.step(`what a page of ${place} has a browser send changes nothing`, async () => {
            person.tolerated = [/Failed to load resource|net::ERR|CORS|blocked/i];
            const [asked, posted] = [`forged-fetch-${at}`, `forged-form-${at}`];
            await page.goto(address);
            await page.evaluate(async ([url, name]) => {
                const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
                // Nobody is told what became of it, and a browser may refuse to send it at all.
                await fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', body }).catch(() => undefined);
            }, [settings.portal + collection, asked]);
            const [answer] = await Promise.all([
                page.waitForResponse(it => it.request().method() === 'POST' && it.url().endsWith(collection)),
                page.evaluate(([url, name]) => {
                    const form = document.createElement('form');
                    Object.assign(form, { method: 'POST', action: url, enctype: 'text/plain' });
                    const field = document.createElement('input');
                    // As text it is `NAME=VALUE`, and that is JSON.
                    Object.assign(field, { name: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"},"data":{"a":"`, value: '"}}' });
                    form.append(field);
                    document.body.append(form);
                    form.submit();
                }, [settings.portal + collection, posted]).catch(() => { /* The page was left meanwhile. */ }),
            ]);
            if (answer.status() < 300) throw new Error(`the form is answered with ${answer.status()}`);
            // The page is left for the answer, and nothing else can be opened before.
            await page.waitForURL(url => url.pathname.endsWith(collection));
            await person.open('/home', 'Home');
            for (const name of [asked, posted]) {
                const { status } = await ask(page, `${collection}/${name}`);
                if (status !== 404) throw new Error(`${name} is answered with ${status}`);
            }
            person.complaints = [];
            person.tolerated = [];
        });
        await context.unroute(address);
    }
}

export async function hostile(browser, settings, report) {
    const person = await browser.person();
    await person.signIn();
    for (const [path, sign] of PLACES) {
        await report.step(`a stranger's text stays a text on ${path}`, async () => {
            await person.open(path, sign);
            await person.check(path);
            if (await made(person.page) > 0) throw new Error('an element came out of a text');
        });
    }
    await objects(person, report);
    await report.step('the page cannot be framed, and needs no inline script', async () => {
        const policy = (await headersOf(settings.portal))['content-security-policy'] ?? '';
        if (!/frame-ancestors 'none'/.test(policy)) throw new Error(`the policy is ${policy}`);
        const scripts = /script-src ([^;]*)/.exec(policy)?.[1] ?? /default-src ([^;]*)/.exec(policy)?.[1] ?? '';
        if (/unsafe-inline|unsafe-eval/.test(scripts)) throw new Error(`scripts: ${scripts}`);
    });
    await report.step('a request without the token of the page changes nothing', async () => {
        person.tolerated = [/Failed to load resource/];
        const [status, after] = await person.page.evaluate(async () => {
            const path = '/k8s/clusters/root/api/v1/namespaces/default/configmaps';
            const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'forged' } });
            const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
            return [answer.status, (await fetch(`${path}/forged`)).status];
        });
        person.tolerated = [];
        if (status !== 403 || after !== 404) throw new Error(`it is answered with ${status}, and the object then with ${after}`);
    });
    await report.step('no address of the application has a token in it, and it would be noticed', async () => {
        if (/token|code=|secret/i.test(person.page.url())) throw new Error(person.page.url());
        await person.check('addresses');
        person.tolerated = [/404/];
        const { csrf } = person;
        if (!csrf) throw new Error('the page has no token of its own');
        for (const address of [`/api/nowhere?a=${csrf}`, '/api/nowhere?access_token=x']) {
            await person.page.evaluate(path => fetch(path), address);
            const found = await person.leaks();
            if (found.length === 0) throw new Error(`nobody noticed ${address}`);
        }
        person.complaints = [];
        person.tolerated = [];
    });
    await elsewhere(person, report);
    await person.context.close();
}
