import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/**', 'build/**', 'docs/**', 'coverage/**'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A feature merges its members into an interface that is empty without it.
      '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'always' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
    },
  },
  {
    // `--fix` with these two rules rewrites `types: {} as {...}` in a machine and breaks all its typing.
    files: ['machines/**/*.ts', 'src/features/*/machine/*.ts'],
    rules: {
      '@typescript-eslint/no-unnecessary-type-assertion': 'off',
      '@typescript-eslint/no-unnecessary-type-arguments': 'off',
    },
  },
  {
    // The page's own project: it runs in a browser.
    files: [
      'src/interfaces/inspector/page/**/*.{ts,tsx}',
      'src/features/*/page/*.{ts,tsx}',
      'src/features/feature-panels.ts',
    ],
    languageOptions: {
      parserOptions: { projectService: false, project: 'src/interfaces/inspector/page/tsconfig.json' },
    },
  },
  {
    // Tests that hand functions over to a browser.
    files: ['test/interfaces/inspector/page/chromium/**/*.ts', 'test/docs/site.nightly.test.ts'],
    languageOptions: {
      parserOptions: { projectService: false, project: 'test/interfaces/inspector/page/chromium/tsconfig.json' },
    },
  },
  {
    // Its inputs and entries would be those of all sources.
    files: ['test/docs/extending/*.ts'],
    languageOptions: { parserOptions: { projectService: false, project: 'test/docs/extending/tsconfig.json' } },
  },
  { files: ['test/**/*.ts'], rules: { '@typescript-eslint/no-non-null-assertion': 'off' } },
  { files: ['**/*.js', '**/*.mjs'], ...tseslint.configs.disableTypeChecked },
);
