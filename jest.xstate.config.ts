/**
 * `npm run test:xstate`: the suites of the kernel, the engine and the runtime, with XState's own actors in place of the
 * table-driven interpreter.
 *
 * @jest-config-loader ts-node
 * @jest-config-loader-options {"transpileOnly":true,"compilerOptions":{"module":"CommonJS","moduleResolution":"bundler"}}
 */
import { createRequire } from 'node:module';
import type { Config } from 'jest';

// An `import` would need an extension that either the compiler or the loader of this file does not resolve.
const { default: base } = createRequire(__filename)('./jest.config.ts') as { readonly default: Config };

const config: Config = {
  ...base,
  testMatch: ['<rootDir>/test/{kernel,engine,runtime,simulation,crash}/**/*.test.ts'],
  moduleNameMapper: {
    '^\\.{1,2}/(.*/)?default-interpreter\\.js$': '<rootDir>/test/fixtures/xstate-by-default.ts',
    ...base.moduleNameMapper,
  },
  globals: { INTERPRETER: 'xstate' },
};
export default config;
