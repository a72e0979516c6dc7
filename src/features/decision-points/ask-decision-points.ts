// Asks decision points, and keeps their answers as long as policy allows.

import { canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import {
  NO_REPLY,
  type DecisionAnswer,
  type DecisionQuery,
  type DecisionReply,
} from '../../core/contract/policy/decision-points.js';
import { readDecision } from './decision-point-rules.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { DecisionService } from '../../engine/ports/effects/decision-service.js';
import type { Log } from '../../engine/ports/log.js';
import { createLruMap } from '../../system/lru-map.js';

interface KeptAnswer {
  readonly answer: DecisionAnswer;
  readonly until: number;
}

const KEPT_MAX = 10_000;

export class DecisionPoints {
  readonly #service: DecisionService;
  readonly #clock: Clock;
  readonly #log: Log;
  /** By the hash of decision point and request. */
  readonly #kept = createLruMap<KeptAnswer>(KEPT_MAX);

  constructor(service: DecisionService, clock: Clock, log: Log) {
    this.#service = service;
    this.#clock = clock;
    this.#log = log;
  }

  async ask({ point, body }: DecisionQuery): Promise<DecisionReply> {
    const key = sha256(`${canonicalJson(point)} ${body}`);
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#now() < kept.until) return { answer: kept.answer, cached: true };
    const { name, protocol, cache_seconds = 0 } = point;
    const reply = await this.#service(point, body);
    const answer = 'json' in reply ? readDecision(protocol, reply.json) : 'none';
    if (answer === 'none') {
      const reason = 'json' in reply ? 'its answer is no decision' : reply.failed;
      this.#log.warn('a decision point gave no answer, so the action is denied', { decision_point: name, reason });
      return NO_REPLY;
    }
    if (cache_seconds > 0) this.#kept.set(key, { answer, until: this.#now() + cache_seconds * 1_000 });
    return { answer, cached: false };
  }

  /** The time that passes, however the clock is set. */
  #now(): number {
    return this.#clock.monotonic?.() ?? this.#clock.now();
  }
}
