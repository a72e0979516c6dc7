// The features whose inputs and entries a ledger may contain. Each is loaded when an entry of it is first read or
// decided. To remove a feature, remove its folder and its line here.

import { declareFeature, installVocabulary, type DeclaredFeature } from '../core/contract/run/feature-vocabulary.js';
import { CONDITIONS, installConditionLanguage, type ConditionLanguage } from '../core/policy/conditions.js';
import { installTreeFeature, type TreeFeature } from '../kernel/tree-feature.js';

const install = async (loading: Promise<TreeFeature>): Promise<void> => {
  installTreeFeature(await loading);
};

/** Conditions record nothing of their own. */
const NOTHING_RECORDED = { feature: CONDITIONS, inputs: {}, entries: {} } as const;
const installLanguage = async (loading: Promise<ConditionLanguage>): Promise<void> => {
  installConditionLanguage(await loading);
  installVocabulary(NOTHING_RECORDED);
};

const FEATURES: readonly DeclaredFeature[] = [
  {
    feature: CONDITIONS,
    openedWith: '"conditions":{',
    load: () =>
      installLanguage(import('./conditions/condition-language.js').then(({ CEDAR_CONDITIONS }) => CEDAR_CONDITIONS)),
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
