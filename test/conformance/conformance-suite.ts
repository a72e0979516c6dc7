// Runs the official conformance suite for MCP servers unchanged, through a relay that adds the bearer token, because
// the suite cannot send one.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

const SUITE = join(ROOT, 'tools/ci/node_modules/@modelcontextprotocol/conformance/dist/index.js');
if (!existsSync(SUITE)) throw new Error('the conformance suite is not installed: npm ci --prefix tools/ci');

/** The suite imports `globSync`, which Node 20 lacks, for a report of its own that is not used here. */
const RESOLVE = `export const resolve = (specifier, context, next) =>
  specifier === 'fs' && context.parentURL?.endsWith('/conformance/dist/index.js')
    ? { url: 'data:text/javascript,export * from "node:fs"; export const globSync = undefined;', shortCircuit: true }
    : next(specifier, context);`;
const encoded = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;
const WITH_GLOB = encoded(`import { register } from 'node:module'; register(${JSON.stringify(encoded(RESOLVE))});`);

interface Check {
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO';
  readonly errorMessage?: string;
}

/** The results of the suite: every scenario with its problems; none for a scenario that passes. */
export type Verdicts = ReadonlyMap<string, readonly string[]>;

/** The revisions of the protocol for which scenarios are run. */
export const REVISIONS = ['2025-06-18', '2025-11-25', '2026-07-28'] as const;
export type Revision = (typeof REVISIONS)[number];

/** The names of all scenarios for servers that apply to a revision. */
export const scenarios = (revision: Revision): Promise<readonly string[]> => listScenarios(revision);

/** The names of the scenarios for servers that have an extension of the protocol. */
export const extensionScenarios = (): Promise<readonly string[]> => listScenarios('extension');

async function listScenarios(scope: string): Promise<readonly string[]> {
  const output = await suite(['list', '--server']);
  return [...output.matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)].flatMap(([, name = '', scopes = '']) =>
    scopes.split(',').includes(scope) ? [name] : [],
  );
}

/** Runs all scenarios of a revision, or one. A warning counts as a failure, as it does in a baseline of the suite. */
export async function verdicts(url: string, revision: Revision, scenario?: string): Promise<Verdicts> {
  const folder = tempFolder('conformance');
  try {
    const which = scenario === undefined ? ['--suite', 'all'] : ['--scenario', scenario];
    await suite(['server', '--url', url, '--output-dir', folder, '--spec-version', revision, ...which]);
    return new Map(
      readdirSync(folder).map((name) => {
        const checks = JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8')) as Check[];
        const wrong = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
        const said = wrong.map(({ errorMessage }) => errorMessage ?? 'without a word');
        return [name.replace(/^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/, '$1'), said];
      }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function suite(argv: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['--import', WITH_GLOB, SUITE, ...argv], {
    env: { PATH: process.env['PATH'] },
    stdio: 'pipe',
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  child.stderr.resume();
  await once(child, 'close');
  return output;
}

export interface Relay {
  readonly port: number;
  /** Sets the target of requests, and the token. */
  lead(url: string, token: string): void;
  close(): Promise<void>;
}

/** Forwards every request unchanged, including Host, with the token added. */
export async function relay(): Promise<Relay> {
  let target = { url: '', token: '' };
  const server: Server = createServer((incoming, outgoing) => {
    const { port } = new URL(target.url);
    const headers = [...incoming.rawHeaders, 'Authorization', `Bearer ${target.token}`];
    const onwards = request(
      { host: '127.0.0.1', port, method: incoming.method, path: incoming.url, headers, agent: false },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        answer.pipe(outgoing);
      },
    );
    onwards.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onwards.destroy());
    incoming.pipe(onwards);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    lead: (url, token) => (target = { url, token }),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
