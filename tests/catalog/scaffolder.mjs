// Backstage's own scaffolder client asks Fairway: every call that its API has and that makes sense here.
//
//   CATALOG_TOKEN=TOKEN node scaffolder.mjs ORIGIN
//
// A template `slow`, whose run waits, and a component `web` are there. Prints one line for
// each step, and fails with the first that is not as it should be.

import assert from 'node:assert/strict';
import { ScaffolderClient } from '@backstage/plugin-scaffolder-common';

// The client reads server-sent events by a library of browsers.
globalThis.window ??= globalThis;
globalThis.document ??= { hidden: false, addEventListener() {}, removeEventListener() {} };

const [origin] = process.argv.slice(2);
const token = process.env.CATALOG_TOKEN;
const headers = given => {
    const all = new Headers(given);
    all.set('authorization', `Bearer ${token}`);
    return all;
};
const settings = {
    discoveryApi: { getBaseUrl: async plugin => `${origin}/api/${plugin}` },
    fetchApi: { fetch: (url, options = {}) => fetch(url, { ...options, headers: headers(options.headers) }) },
    identityApi: { getBackstageIdentity: async () => ({ type: 'user', userEntityRef: 'user:default/backstage', ownershipEntityRefs: [] }) },
    scmIntegrationsApi: {},
};
const client = new ScaffolderClient(settings);
const polling = new ScaffolderClient({ ...settings, useLongPollingLogs: true });
const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0 nobody@example';
const machine = name => ({ templateRef: 'template:default/virtual-machine', values: { name, sshKey: key } });

async function step(what, check) {
    const begun = performance.now();
    await check();
    console.log(`  ok ${String(Math.round(performance.now() - begun)).padStart(5)} ms  scaffolder: ${what}`);
}

function follow(from, taskId, after) {
    return new Promise((done, failed) => {
        const events = [];
        from.streamLogs({ taskId, after }).subscribe({ next: event => events.push(event), complete: () => done(events), error: failed });
    });
}

async function until(what, look) {
    for (const begun = Date.now(); Date.now() - begun < 60_000; await new Promise(done => setTimeout(done, 50))) {
        const found = await look();
        if (found) return found;
    }
    throw new Error(`${what} did not come`);
}

await step('the template asks its questions', async () => {
    const schema = await until('the template', () => client.getTemplateParameterSchema('template:default/virtual-machine').catch(() => undefined));
    assert.equal(schema.title, 'Virtual machine');
    assert.ok(schema.steps.length > 0 && schema.steps.every(page => page.schema && page.title));
    assert.ok(schema.steps.some(page => page.schema.properties?.sshKey));
    await assert.rejects(client.getTemplateParameterSchema('template:default/none'), error => error.cause.name === 'NotFoundError');
});

await step('actions and filters are listed', async () => {
    const actions = await client.listActions();
    assert.ok(actions.some(one => one.id === 'http:backstage:request' && one.schema.input.required.includes('path')));
    const { filters, globals } = await client.listTemplatingExtensions();
    assert.ok(filters.parseRepoUrl && globals.functions && globals.values);
});

let made;
await step('a run is started, followed and shown', async () => {
    made = (await client.scaffold(machine('web'))).taskId;
    const events = await follow(client, made);
    assert.deepEqual(events.map(event => event.id), events.map((_, at) => at + 1));
    assert.equal(events.at(-1).type, 'completion');
    assert.equal(events.at(-1).body.error, undefined, JSON.stringify(events.at(-1)));
    assert.ok(events.some(event => event.body.stepId === 'publish' && event.body.status === 'completed'), JSON.stringify(events));
    const links = events.at(-1).body.output.links;
    assert.ok(links.length > 0 && links.every(link => link.title));
    const task = await client.getTask(made);
    assert.equal(task.status, 'completed');
    assert.equal(task.spec.templateInfo.entityRef, 'template:default/virtual-machine');
    assert.equal(task.spec.user.ref, 'user:default/backstage');
    assert.ok(task.spec.steps.length > 0 && task.createdAt);
    const later = await follow(client, made, events.length - 1);
    assert.deepEqual(later.map(event => event.type), ['completion']);
    const polled = await follow(polling, made);
    assert.deepEqual(polled, events);
});

await step('runs are listed, also only one\'s own', async () => {
    const all = await client.listTasks({ filterByOwnership: 'all' });
    const owned = await client.listTasks({ filterByOwnership: 'owned', limit: 1, offset: 0 });
    assert.ok(all.tasks.some(task => task.id === made) && all.totalTasks >= 1);
    assert.equal(owned.tasks.length, 1);
});

await step('a run that fails says why, and is tried again', async () => {
    const { taskId } = await client.scaffold(machine('web'));
    const events = await follow(client, taskId);
    assert.match(events.at(-1).body.error.message, /exists already/);
    assert.equal((await client.getTask(taskId)).status, 'failed');
    const retried = await client.retry(taskId);
    assert.equal(retried.id, taskId);
    await until('the end', async () => (await client.getTask(taskId)).status === 'failed');
});

const template = {
    apiVersion: 'scaffolder.backstage.io/v1beta3', kind: 'Template', metadata: { name: 'tried' },
    spec: {
        type: 'service', parameters: [{ properties: { name: { type: 'string' } } }],
        steps: [
            { id: 'files', action: 'fetch:template', input: { url: './skeleton', values: { name: '${{ parameters.name }}' } } },
            { id: 'ask', action: 'http:backstage:request', input: { path: '/api/catalog/entities/by-name/component/default/web' } },
        ],
        output: { text: [{ title: 'code', content: '${{ steps.ask.output.code }} ${{ steps.ask.output.body.metadata.name }}' }] },
    },
};

await step('a dry run shows the files of a template that is nowhere yet', async () => {
    const content = Buffer.from('hello ${{ values.name }}\n').toString('base64');
    const request = { template, values: { name: 'ann' }, secrets: {}, directoryContents: [{ path: 'skeleton/${{ values.name }}.txt', base64Content: content }] };
    const report = await client.dryRun(request);
    assert.deepEqual(report.directoryContents.map(file => file.path), ['ann.txt']);
    assert.equal(Buffer.from(report.directoryContents[0].base64Content, 'base64').toString(), 'hello ann\n');
    assert.equal(report.output.text[0].content, '200 web', JSON.stringify(report));
    assert.ok(report.log.every(line => typeof line.body.message === 'string') && Array.isArray(report.steps));
    await assert.rejects(client.dryRun({ ...request, directoryContents: [{ path: '../up', base64Content: content }] }), error => error.cause.name === 'InputError');
});

await step('wrong answers are told to the form', async () => {
    await assert.rejects(client.scaffold({ ...machine('Web') }), /400 .*"errors"/);
    await assert.rejects(client.getTask('default.none'), error => error.cause.name === 'NotFoundError');
});

await step('a run is cancelled', async () => {
    const { taskId } = await client.scaffold({ templateRef: 'template:default/slow', values: {} });
    await until('the start', async () => (await client.getTask(taskId)).status === 'processing');
    const followed = follow(client, taskId);
    await client.cancelTask(taskId);
    const events = await followed;
    assert.equal(events.at(-1).type, 'completion');
    assert.ok(events.some(event => event.type === 'cancelled'), JSON.stringify(events));
    assert.equal((await client.getTask(taskId)).status, 'cancelled');
});
