// Backstage's own client asks Fairway's catalog: every call that its API has, against what was pushed before.
//
//   CATALOG_TOKEN=TOKEN node client.mjs ORIGIN TARGET
//
// TARGET is the address of a catalog file that is not found by discovery. Prints one line for each step, and fails with the first that is
// not as it should be.

import assert from 'node:assert/strict';
import { CatalogClient, CATALOG_FILTER_EXISTS } from '@backstage/catalog-client';

const [origin, target] = process.argv.slice(2);
const token = process.env.CATALOG_TOKEN;
const client = new CatalogClient({
    discoveryApi: { getBaseUrl: async plugin => `${origin}/api/${plugin}` },
});
const options = { token };

async function step(what, check) {
    const begun = performance.now();
    await check();
    console.log(`  ok ${String(Math.round(performance.now() - begun)).padStart(5)} ms  ${what}`);
}

async function until(what, look) {
    for (const begun = Date.now(); Date.now() - begun < 60_000; await new Promise(done => setTimeout(done, 50))) {
        const found = await look();
        if (found) return found;
    }
    throw new Error(`${what} did not come`);
}

const names = items => items.map(entity => entity.metadata.name).filter(name => !name.startsWith('generated-'));

await step('what was pushed is in the catalog', () =>
    until('the component', async () => (await client.getEntityByRef('component:default/web', options)) !== undefined));

await step('an entity has what the catalog knows', async () => {
    const web = await client.getEntityByRef({ kind: 'Component', namespace: 'default', name: 'web' }, options);
    assert.equal(web.metadata.name, 'web');
    assert.equal(web.metadata.namespace, 'default');
    assert.match(web.metadata.uid, /^[0-9a-f-]{36}$/);
    assert.ok(web.metadata.etag);
    assert.match(web.metadata.annotations['backstage.io/managed-by-location'], /^url:https:.*catalog-info\.yaml$/);
    assert.ok(web.relations.some(one => one.type === 'ownedBy' && one.targetRef === 'group:default/team'));
    const team = await client.getEntityByRef('group:default/team', options);
    assert.ok(team.relations.some(one => one.type === 'ownerOf' && one.targetRef === 'component:default/web'));
    assert.equal(await client.getEntityByRef('component:default/none', options), undefined);
});

await step('getEntities filters, projects and sorts', async () => {
    const all = await client.getEntities({}, options);
    assert.ok(all.items.length >= 4);
    const components = await client.getEntities({
        filter: { kind: 'Component' }, order: { field: 'metadata.name', order: 'desc' }, fields: ['metadata.name', 'kind'],
    }, options);
    assert.deepEqual(names(components.items), ['worker', 'web']);
    assert.deepEqual(Object.keys(components.items[0]).sort(), ['kind', 'metadata']);
    const either = await client.getEntities({
        filter: [{ kind: 'api' }, { kind: 'component', 'spec.type': ['website', 'library'] }],
    }, options);
    assert.deepEqual(names(either.items), ['rest', 'worker']);
    const annotated = await client.getEntities({
        filter: { 'metadata.annotations.backstage.io/kubernetes-id': CATALOG_FILTER_EXISTS },
    }, options);
    assert.deepEqual(names(annotated.items), ['web']);
    const page = await client.getEntities({ filter: { kind: 'component' }, offset: 1, limit: 1 }, options);
    assert.deepEqual(names(page.items), ['worker']);
});

await step('queryEntities pages forth and back, and searches', async () => {
    const first = await client.queryEntities({
        filter: [{ kind: ['component', 'api'] }, { kind: 'group', 'metadata.name': 'team' }], orderFields: { field: 'metadata.name', order: 'asc' }, limit: 2,
    }, options);
    assert.equal(first.totalItems, 4);
    assert.deepEqual(names(first.items), ['rest', 'team']);
    assert.equal(first.pageInfo.prevCursor, undefined);
    const second = await client.queryEntities({ cursor: first.pageInfo.nextCursor, limit: 2 }, options);
    assert.deepEqual(names(second.items), ['web', 'worker']);
    assert.equal(second.pageInfo.nextCursor, undefined);
    const back = await client.queryEntities({ cursor: second.pageInfo.prevCursor, limit: 2 }, options);
    assert.deepEqual(names(back.items), ['rest', 'team']);
    const found = await client.queryEntities({
        fullTextFilter: { term: 'WORK', fields: ['metadata.name', 'metadata.title'] },
    }, options);
    assert.deepEqual(names(found.items), ['worker']);
    if (typeof client.streamEntities === 'function') {
        const streamed = [];
        for await (const batch of client.streamEntities({ filter: { kind: 'component' }, pageSize: 1 }, options)) {
            streamed.push(...batch);
        }
        assert.deepEqual(names(streamed), ['web', 'worker']);
    }
});

await step('queryEntities takes predicates where the client has them', async () => {
    const found = await client.queryEntities({
        query: { $all: [{ kind: 'component' }, { $not: { 'spec.type': 'service' } }] },
    }, options);
    // Older clients do not send it, and get everything.
    assert.ok(names(found.items).includes('worker'));
});

await step('getEntitiesByRefs keeps the order and says what is missing', async () => {
    const { items } = await client.getEntitiesByRefs({
        entityRefs: ['group:default/team', 'component:default/none', 'component:default/web'], fields: ['metadata.name'],
    }, options);
    assert.deepEqual(items.map(entity => entity?.metadata.name), ['team', undefined, 'web']);
});

await step('facets count', async () => {
    const { facets } = await client.getEntityFacets({ facets: ['kind', 'spec.type'], filter: { kind: 'component' } }, options);
    assert.deepEqual(facets.kind, [{ value: 'Component', count: 2 }]);
    assert.deepEqual(facets['spec.type'], [{ value: 'library', count: 1 }, { value: 'service', count: 1 }]);
});

await step('ancestors lead to the location', async () => {
    const ancestors = await client.getEntityAncestors({ entityRef: 'component:default/web' }, options);
    assert.equal(ancestors.rootEntityRef, 'component:default/web');
    assert.equal(ancestors.items[0].entity.metadata.name, 'web');
    assert.equal(ancestors.items.at(-1).entity.kind, 'Location');
});

await step('entities are judged', async () => {
    const good = {
        apiVersion: 'backstage.io/v1alpha1', kind: 'Component', metadata: { name: 'x' },
        spec: { type: 'a', lifecycle: 'b', owner: 'c' },
    };
    assert.deepEqual(await client.validateEntity(good, 'url:https://example.com/x', options), { valid: true });
    const bad = await client.validateEntity({ ...good, spec: {} }, 'url:https://example.com/x', options);
    assert.equal(bad.valid, false);
    assert.match(bad.errors[0].message, /must have required property 'type'/);
});

await step('a location is registered, found, refreshed and removed', async () => {
    const tried = await client.addLocation({ target, dryRun: true }, options);
    assert.deepEqual(names(tried.entities), ['late']);
    assert.equal(await client.getEntityByRef('component:default/late', options), undefined);
    const { location, entities } = await client.addLocation({ target }, options);
    assert.deepEqual(names(entities), ['late']);
    await assert.rejects(client.addLocation({ target }, options), /409/);
    await until('the entity', () => client.getEntityByRef('component:default/late', options));
    assert.equal((await client.getLocationById(location.id, options)).target, target);
    assert.equal((await client.getLocationByRef(`url:${target}`, options)).id, location.id);
    assert.equal((await client.getLocationByEntity('component:default/late', options)).id, location.id);
    const { items } = await client.getLocations({}, options);
    assert.ok(items.some(one => one.id === location.id));
    await client.refreshEntity('component:default/late', options);
    await client.removeLocationById(location.id, options);
    await until('the end', async () => (await client.getEntityByRef('component:default/late', options)) === undefined);
    assert.equal(await client.getLocationById(location.id, options), undefined);
});

await step('errors are read by the client', async () => {
    await assert.rejects(client.getEntities({ filter: { kind: 'component' } }, { token: 'wrong' }), error => {
        assert.equal(error.statusCode ?? error.response?.status, 401);
        assert.equal(error.cause.name, 'AuthenticationError');
        return true;
    });
    await assert.rejects(client.queryEntities({ cursor: 'nonsense' }, options), error => error.cause.name === 'InputError');
});
