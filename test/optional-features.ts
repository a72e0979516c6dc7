// Which features can be removed, the registry that names them, and the entries of the package that export from them.

import ts from 'typescript';
import { filesIn } from './sources.js';

/** The features that only these lists and exports of the package name: each can be removed with these lines. */
export const OPTIONAL_FEATURES: readonly string[] = [
  'approvals',
  'backup',
  'cluster',
  'conditions',
  'decision-points',
  'decisions',
  'doctor',
  'evidence',
  'exports',
  'identity',
  'models',
  'policy-lint',
  'promotions',
  'simulation',
  'telemetry',
  'upstreams',
];

/** The registry of all features. It loads what it lists when that is needed. */
export const REGISTRY = 'src/features/declare-features.ts';

/** The routes, tools and services of features, which are imported at once. */
export const SERVICE_LISTS = [
  'src/features/feature-routes.ts',
  'src/features/feature-services.ts',
  'src/features/feature-tools.ts',
];

/** The entries of the package whose exports come from several folders. */
export const PUBLIC_ENTRIES: readonly string[] = ['src/index.ts', ...filesIn('src/interfaces', /^index\.ts$/)];

/** The statements `export … from` of a public entry that name the folder of a feature. They are part of the feature. */
export const exportsOfFeature = (entry: ts.SourceFile, feature: string): readonly ts.ExportDeclaration[] =>
  entry.statements
    .filter(ts.isExportDeclaration)
    .filter(({ moduleSpecifier }) => moduleSpecifier?.getText(entry).includes(`/features/${feature}/`) === true);
