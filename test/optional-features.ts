// Which features can be removed, and the registry that names them.

/** The features that nothing but the registry imports: each can be removed with its entry there. */
export const OPTIONAL_FEATURES: readonly string[] = [
  'conditions',
  'decision-points',
  'doctor',
  'evidence',
  'exports',
  'models',
  'policy-lint',
];

/** The registry of all features. It loads what it lists when that is needed. */
export const REGISTRY = 'src/features/declare-features.ts';

/** The routes and tools of features, which services import at once. */
export const SERVICE_LISTS = ['src/features/feature-routes.ts', 'src/features/feature-tools.ts'];
