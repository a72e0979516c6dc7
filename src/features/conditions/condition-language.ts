// The language of conditions as core asks it: Cedar, with the counters that conditions read.

import type { OptionalFiles } from '../../core/contract/policy/pins.js';
import type { CounterQuery } from '../../core/contract/run/counter-fact.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type {
  ConditionedPolicy,
  ConditionedRequest,
  ConditionedRun,
  ConditionedStep,
  ConditionLanguage,
  Conditions,
  ConditionVerdict,
  LoadedConditions,
  Obligation,
} from '../../core/policy/policy-features.js';
import type { NamedPolicyFile } from '../../core/policy/files/read-policy-file.js';
import { engineVersion } from './cedar.js';
import type { ParsedCondition } from './condition-file.js';
import { runVerdict, stepVerdict } from './condition-verdict.js';
import {
  loadConditions,
  withConditionObligation,
  withoutCondition,
  type IndexedConditions,
} from './indexed-conditions.js';
import { queriesOf } from './counters/counter-queries.js';
import { loadCounters } from './counters/load-counters.js';

export const CEDAR_CONDITIONS: ConditionLanguage = { load, engineVersion };

/** Conditions read counters, so these come first. */
function load({ conditions, counters }: OptionalFiles<NamedPolicyFile>, policy: ConditionedPolicy): LoadedConditions {
  const counted = counters && loadCounters(counters, policy.catalogue, conditions !== undefined);
  const withCounters = counted === undefined ? policy : { ...policy, counters: counted.counters };
  const read = conditions && loadConditions(conditions.path, conditions.bytes, withCounters);
  return {
    findings: [...(counted?.findings ?? []), ...(read?.findings ?? [])],
    ...(counted === undefined ? {} : { counters: counted.counters }),
    ...(read === undefined ? {} : { conditions: new CedarConditions(read.conditions) }),
  };
}

class CedarConditions implements Conditions {
  readonly all: readonly ParsedCondition[];
  readonly names: readonly string[];
  readonly #indexed: IndexedConditions;

  constructor(indexed: IndexedConditions) {
    this.all = indexed.all;
    this.names = indexed.names;
    this.#indexed = indexed;
  }

  canApply(action: string): boolean {
    return this.#indexed.forAction(action) !== null;
  }

  counterQueries(step: ConditionedStep, agent: RunContext, policy: ConditionedPolicy): readonly CounterQuery[] {
    const applicable = this.#indexed.forAction(step.name);
    const isRead = applicable !== null && applicable.reads.context?.has('counters') !== false;
    return queriesOf(step, agent, policy, isRead);
  }

  ofStep(request: ConditionedRequest, policy: ConditionedPolicy): ConditionVerdict {
    return stepVerdict(request, this.#indexed, policy);
  }

  ofRun(run: ConditionedRun, policy: ConditionedPolicy): ConditionVerdict {
    return runVerdict(run, this.#indexed, policy);
  }

  without(id: string, policy: ConditionedPolicy): Conditions {
    return new CedarConditions(withoutCondition(this.#indexed, id, policy));
  }

  withObligation(id: string, obligation: Obligation | null, policy: ConditionedPolicy): Conditions {
    return new CedarConditions(withConditionObligation(this.#indexed, id, obligation, policy));
  }
}
