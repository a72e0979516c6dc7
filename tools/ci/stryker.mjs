// The programming interface of StrykerJS, which only `npm run mutate` needs: `npm ci --prefix tools/ci` installs it.
export { declareFactoryPlugin, PluginKind } from '@stryker-mutator/api/plugin';
export { DryRunStatus, MutantRunStatus, TestStatus } from '@stryker-mutator/api/test-runner';
