// A call to a published address, as programs make it: by its name, with the platform's authority and nothing else to be trusted.

import { readFileSync } from 'node:fs';
import https from 'node:https';

export class Caller {
    constructor({ authority, gateway_address: address }) {
        this.ca = readFileSync(authority);
        this.address = address;
    }

    /** What comes back: a status and a text; status 0 and why, if nobody answers. */
    call(address, key) {
        const { hostname, port, pathname } = new URL(address);
        const asked = {
            // The name is resolved by no one: gateways have an address of their own here.
            host: this.address, port: port || 443, servername: hostname, path: pathname, ca: this.ca, agent: false, timeout: 10_000,
            headers: { Host: port ? `${hostname}:${port}` : hostname, ...(key ? { Authorization: `APIKEY ${key}` } : {}) },
        };
        return new Promise(resolve => {
            const request = https.get(asked, answer => {
                let body = '';
                answer.setEncoding('utf8').on('data', piece => { body += piece; }).on('end', () => resolve({ status: answer.statusCode, body }));
            });
            request.on('timeout', () => request.destroy(new Error('no answer within 10 s')));
            request.on('error', error => resolve({ status: 0, body: error.message }));
        });
    }
}
