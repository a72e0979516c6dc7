// The features that trees need: those whose inputs and entries a ledger may contain, and those that policies need. Each
// is loaded with the first entry or policy that needs it. To remove a feature, remove its folder and its line here.

import { declareFeature, installVocabulary, type DeclaredFeature } from '../core/contract/run/feature-vocabulary.js';
import { HOOKS, installCallDecider, mayHaveCallRules, type CallDecider } from '../core/policy/calls.js';
import { CONDITIONS, installConditionLanguage, type ConditionLanguage } from '../core/policy/conditions.js';
import { installTreeFeature, type TreeFeature } from '../kernel/tree-feature.js';

const install = async (loading: Promise<TreeFeature>): Promise<void> => {
  installTreeFeature(await loading);
};

/** Installs a feature that decides by a policy and records nothing of its own. */
const installWithoutRecords = (feature: string): void => {
  installVocabulary({ feature, inputs: {}, entries: {} });
};
const installLanguage = async (loading: Promise<ConditionLanguage>): Promise<void> => {
  installConditionLanguage(await loading);
  installWithoutRecords(CONDITIONS);
};
const installCallRules = async (loading: Promise<CallDecider>): Promise<void> => {
  installCallDecider(await loading);
  installWithoutRecords(HOOKS);
};

const FEATURES: readonly DeclaredFeature[] = [
  {
    feature: CONDITIONS,
    isNeededBy: ({ conditions, counters }) => conditions !== undefined || counters !== undefined,
    load: () =>
      installLanguage(import('./conditions/condition-language.js').then(({ CEDAR_CONDITIONS }) => CEDAR_CONDITIONS)),
  },
  {
    feature: HOOKS,
    isNeededBy: ({ lanes }) => lanes !== undefined && mayHaveCallRules(lanes.bytes),
    load: () => installCallRules(import('./hooks/calls/call-decision.js').then(({ CALL_DECIDER }) => CALL_DECIDER)),
  },
  {
    feature: 'sessions',
    stateMember: 'sessions',
    load: () => install(import('./sessions/tree/session-tree.js').then(({ SESSIONS }) => SESSIONS)),
  },
];

/** Declares all features of this package. Calling it again changes nothing. */
export function declareFeatures(): void {
  for (const feature of FEATURES) declareFeature(feature);
}
