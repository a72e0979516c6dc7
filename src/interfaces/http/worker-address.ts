// Which worker a client is sent to if this process has no sandbox volume, or cannot evaluate a tree of a later version.

import { createHash } from 'node:crypto';
import type { ClusterDirectory, ClusterWorker } from '../../engine/ports/ledger/cluster.js';
import type { Clock } from '../../engine/ports/clock.js';
import { canServeLater } from '../../host/readiness/turnpike-readiness.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import { createRefusal, type Refusal } from '../service/problems.js';
import type { InspectionService } from './http-service.js';

const WORKER_HEADER = 'Turnpike-Worker';
/** How long the list of workers is used, in ms. */
const CACHED_MS = 1_000;

/** Finds the workers of a shared ledger that have the volume and an address. */
export class WorkerAddresses {
  readonly #cluster: Pick<ClusterDirectory, 'status'>;
  readonly #clock: Clock;
  readonly #version: string;
  #workers: Promise<readonly ClusterWorker[]> = Promise.resolve([]);
  #readAt = -Infinity;

  /** @param version that of this worker */
  constructor(cluster: Pick<ClusterDirectory, 'status'>, clock: Clock, version: string) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#version = version;
  }

  /**
   * Always the same one of the same workers, because it has the run tree in memory.
   * @param isOfLater whether a later version started the run @returns null without one
   */
  async find(run_id: string, isOfLater = false): Promise<string | null> {
    const now = this.#clock.now();
    if (now - this.#readAt >= CACHED_MS) {
      this.#readAt = now;
      this.#workers = this.#cluster.status().then(
        ({ workers }) => workers,
        () => [],
      );
    }
    const workers = await this.#workers;
    const able = isOfLater ? workers.filter((one) => canServeLater(one, this.#version)) : workers;
    const addresses = able.flatMap(addressOf);
    const place = createHash('sha256').update(rootRunIdOf(run_id)).digest().readUInt32BE(0);
    return addresses[place % addresses.length] ?? null;
  }
}

const addressOf = ({ over_at, connected, volume_id, address }: ClusterWorker): readonly string[] =>
  over_at === null && connected && volume_id !== null && isHeaderValue(address) ? [address] : [];

/** The database may contain anything. */
const isHeaderValue = (address: string | null): address is string =>
  address !== null && /^https?:\/\/[\x21-\x7e]{1,2000}$/.test(address);

/** Adds the address of another worker to a refusal that needs one. */
export async function withWorkerAddress(
  refusal: Refusal,
  { findWorker }: Pick<InspectionService, 'findWorker'>,
  run_id = '',
): Promise<Refusal> {
  const isOfLater = refusal.code === 'LEDGER_OF_LATER_VERSION' || refusal.code === 'LEDGER_UNSUPPORTED';
  if (!isOfLater && refusal.code !== 'VOLUME_ELSEWHERE') return refusal;
  const address = (await findWorker?.(run_id, isOfLater)) ?? null;
  return address === null ? refusal : createRefusal(refusal.code, { ...refusal.headers, [WORKER_HEADER]: address });
}
