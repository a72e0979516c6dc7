// Planted leaks: ways by which content of a withholding lane gets out. The walk must find each.

import { gzipSync } from 'node:zlib';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import { writeEvidence } from '../../src/features/evidence/write-evidence.js';
import { homePaths, openHome } from '../../src/home/home.js';
import { readLedgerSigner } from '../../src/home/ledger-key.js';
import type { Route } from '../../src/interfaces/http/routes/route.js';
import { ROUTES } from '../../src/interfaces/http/routes/system-routes.js';
import type { InspectorSource } from '../../src/interfaces/inspector/inspector-source.js';
import { httpOutputs } from './canary-http.js';
import { plantedWorld, type CanaryWorld } from './canary-world.js';
import { kindsIn, walked } from './canary-walk.js';

export interface PlantedLeak {
  readonly name: string;
  /** Whether the walk finds it. */
  readonly isFound: (world: CanaryWorld) => Promise<boolean>;
}

/** Kinds of content: a walk that checks only some of them finds fewer. */
const KINDS_MIN = 10;
const routesOf = (path: string): Route[] => ROUTES.filter((route) => route.method === 'GET' && route.path === path);

export const PLANTED_LEAKS: readonly PlantedLeak[] = [
  { name: 'an inspector that shows artifacts as they are stored', isFound: storedArtifacts },
  { name: 'requests that are shown to everyone, as if everyone could approve them', isFound: openRequests },
  { name: 'a bundle that is written without regard to lanes, also when it is packed', isFound: wholeBundle },
];

async function storedArtifacts(world: CanaryWorld): Promise<boolean> {
  const { folded } = world.bench.turnpike.ledger;
  const artifact: InspectorSource['artifact'] = async (log_index, hash) => {
    for await (const entry of folded.log(log_index)) {
      const found = (await folded.artifactsOf(entry)).find((one) => artifactRef(one).hash_sha256 === hash);
      return found !== undefined && 'bytes' in found ? found.bytes : null;
    }
    return null;
  };
  const inspector = (own: InspectorSource): InspectorSource =>
    Object.assign(Object.create(own) as InspectorSource, { artifact, event: own.event.bind(own) });
  const routes = routesOf('/api/v1/events/{log_index}/artifacts/{sha256}');
  const { leaks } = await walked(httpOutputs(world, { routes, inspector }));
  const kinds = leaks.map((leak) => leak.replace(/^.*?: (?=\S)/, '').replace(/ as .*$/, ''));
  return new Set(kinds).size > KINDS_MIN;
}

/** In a separate world, because the reader of its ledger is changed. */
async function openRequests(): Promise<boolean> {
  const planted = await plantedWorld();
  try {
    const { ledger } = planted.bench.turnpike;
    const approval = ledger.approval.bind(ledger);
    ledger.approval = (at, now) => approval(at, now, { actor: 'berta', role: 'ATTORNEY_ADMIN' });
    const routes = routesOf('/api/v1/approvals/{run_id}/{digest}');
    const { leaks } = await walked(httpOutputs(planted, { routes }));
    return leaks.some((leak) => leak.includes('as observe: record that waits for approval'));
  } finally {
    await planted.bench.close();
  }
}

async function wholeBundle({ bench }: CanaryWorld): Promise<boolean> {
  const { store, externalHeadStore } = openHome(homePaths(bench.home), { readOnly: true });
  try {
    const lines: string[] = [];
    const signer = readLedgerSigner(homePaths(bench.home).ledgerKey);
    const head = await externalHeadStore.read();
    if (signer === null || head?.note === undefined) throw new Error('the home has no signed head');
    const put = (line: string): Promise<void> => Promise.resolve(void lines.push(line));
    await writeEvidence(store, head, signer, put);
    const text = lines.join('');
    return [Buffer.from(text), gzipSync(text)].every((bytes) => kindsIn(bytes).length > KINDS_MIN);
  } finally {
    await store.close();
  }
}
