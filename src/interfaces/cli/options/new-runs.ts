/** Limits the runs that an agent may begin over MCP after its runs were denied, failed or were cancelled. */
export const NEW_RUNS_OPTION = {
  name: 'new-runs-max',
  value: 'N',
  help: 'runs that an agent may begin after denied, failed and cancelled ones (default: any number)',
} as const;
