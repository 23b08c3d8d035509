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
    for (const [order, expected] of [['asc', ['web', 'worker']], ['desc', ['worker', 'web']]]) {
        const request = { query: { kind: 'component' }, orderFields: { field: 'metadata.name', order }, limit: 1 };
        const first = await client.queryEntities(request, options);
        const second = await client.queryEntities({ cursor: first.pageInfo.nextCursor, limit: 1 }, options);
        assert.deepEqual([...names(first.items), ...names(second.items)], expected);
        assert.equal(first.totalItems, 2);
    }
    const { facets } = await client.getEntityFacets({ facets: ['kind'], query: { 'spec.type': 'library' } }, options);
    assert.deepEqual(facets.kind, [{ value: 'Component', count: 1 }]);
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
    assert.equal(location.entityRef, items.find(one => one.id === location.id).entityRef);
    assert.equal((await client.getEntityByRef(location.entityRef, options)).spec.target, target);
    const again = await client.addLocation({ target, onConflict: 'refresh' }, options);
    assert.equal(again.location.id, location.id);
    const queried = await client.queryLocations({ query: { target: { $hasPrefix: target } } }, options);
    assert.deepEqual(queried.items.map(one => one.id), [location.id]);
    assert.equal(queried.totalItems, 1);
    const streamed = [];
    for await (const batch of client.streamLocations({ limit: 1 }, options)) streamed.push(...batch);
    assert.deepEqual(streamed.map(one => one.id).sort(), items.map(one => one.id).sort());
    assert.ok(streamed.length > 1);
    const moved = target.replace('late.yaml', 'moved.yaml');
    assert.equal((await client.updateLocation(location.id, { target: moved }, options)).target, moved);
    await until('what is there', () => client.getEntityByRef('component:default/moved', options));
    await until('the orphan', async () =>
        (await client.getEntityByRef('component:default/late', options)).metadata.annotations['backstage.io/orphan'] === 'true');
    // Another location has the old address, and takes over what is there.
    const { location: other } = await client.addLocation({ target }, options);
    assert.notEqual(other.id, location.id);
    await until('the end of the orphan', async () =>
        (await client.getEntityByRef('component:default/late', options)).metadata.annotations['backstage.io/orphan'] === undefined);
    await assert.rejects(client.updateLocation(location.id, { target }, options), /409/);
    await client.removeLocationById(other.id, options);
    await client.removeLocationById(location.id, options);
    await until('the end', async () => (await client.getEntityByRef('component:default/late', options)) === undefined);
    assert.equal(await client.getLocationById(location.id, options), undefined);
});

await step('who was refused an entity has it at once when its location goes', async () => {
    const twin = target.replace('late.yaml', 'twin.yaml');
    const { location: first } = await client.addLocation({ target }, options);
    await until('the entity', () => client.getEntityByRef('component:default/late', options));
    const { location: second } = await client.addLocation({ target: twin }, options);
    await until('the refusal', async () => {
        const { items } = await client.getLocations({}, options);
        return items.find(one => one.id === second.id)?.status.errors?.some(error => error.includes('conflicting entityRef'));
    });
    assert.equal((await client.getEntityByRef('component:default/late', options)).spec.lifecycle, 'experimental');
    await client.removeLocationById(first.id, options);
    await until('the other one', async () =>
        (await client.getEntityByRef('component:default/late', options))?.spec.lifecycle === 'production');
    await client.removeLocationById(second.id, options);
    await until('the end', async () => (await client.getEntityByRef('component:default/late', options)) === undefined);
});

await step('an address is looked at before it is registered', async () => {
    const found = await client.analyzeLocation({ location: { type: 'url', target } }, options);
    assert.deepEqual(found.existingEntityFiles.map(one => one.entity.metadata.name), ['late']);
    assert.equal(found.existingEntityFiles[0].isRegistered, false);
    assert.deepEqual(found.generateEntities, []);
});

await step('an entity is removed by its uid, and what a file says comes back', async () => {
    const { uid } = (await client.getEntityByRef('component:default/worker', options)).metadata;
    await client.removeEntityByUid(uid, options);
    await until('it again', async () => {
        const again = await client.getEntityByRef('component:default/worker', options);
        return again !== undefined && again.metadata.uid !== uid;
    });
});

await step('errors are read by the client', async () => {
    await assert.rejects(client.getEntities({ filter: { kind: 'component' } }, { token: 'wrong' }), error => {
        assert.equal(error.statusCode ?? error.response?.status, 401);
        assert.equal(error.cause.name, 'AuthenticationError');
        return true;
    });
    await assert.rejects(client.queryEntities({ cursor: 'nonsense' }, options), error => error.cause.name === 'InputError');
});
