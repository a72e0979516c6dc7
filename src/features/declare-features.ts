// The features that trees need: those whose inputs and entries a ledger may contain, and those that policies need. Each
// is loaded with the first entry or policy that needs it. To remove a feature, remove its folder and its line here.

import { declareFeature, installVocabulary, type DeclaredFeature } from '../core/contract/run/feature-vocabulary.js';
import { HOOKS, installCallDecider, type CallDecider } from '../core/policy/calls.js';
import { CONDITIONS, installConditionLanguage, type ConditionLanguage } from '../core/policy/conditions.js';
import { DECISION_POINTS, installDecisionPoints, type DecisionPointRules } from '../core/policy/decision-queries.js';
import { mayHaveKey } from '../core/policy/files/may-have-key.js';
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
const installPoints = async (loading: Promise<DecisionPointRules>): Promise<void> => {
  installDecisionPoints(await loading);
  installWithoutRecords(DECISION_POINTS);
};

const FEATURES: readonly DeclaredFeature[] = [
  {
    feature: CONDITIONS,
    isNeededBy: ({ conditions, counters }) => conditions !== undefined || counters !== undefined,
    load: () =>
      installLanguage(import('./conditions/condition-language.js').then(({ CEDAR_CONDITIONS }) => CEDAR_CONDITIONS)),
  },
  {
    feature: DECISION_POINTS,
    isNeededBy: ({ actions }) => actions !== undefined && mayHaveKey(actions.bytes, 'decision_points'),
    load: () => installPoints(import('./decision-points/decision-point-rules.js').then((module) => module.POINT_RULES)),
  },
  {
    feature: HOOKS,
    isNeededBy: ({ lanes }) => lanes !== undefined && mayHaveKey(lanes.bytes, 'calls'),
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
