// The checks of a part of the campaign, and its findings.

export class Tally {
  readonly part: string;
  cases = 0;
  checks = 0;
  readonly violations: string[] = [];
  /** Figures that are measured, not judged. */
  readonly notes = new Map<string, number>();

  constructor(part: string) {
    this.part = part;
  }

  /** One check. `message` describes the finding, and is built only when it is needed. */
  that(holds: boolean, message: () => string): void {
    this.checks += 1;
    if (!holds) this.violations.push(message());
  }

  note(name: string, by = 1): void {
    this.notes.set(name, (this.notes.get(name) ?? 0) + by);
  }

  most(name: string, value: number): void {
    this.notes.set(name, Math.max(this.notes.get(name) ?? 0, value));
  }
}

/** The parts as a table, with the findings below it. */
export function tableOf(tallies: readonly Tally[]): string {
  const rows = tallies.map(({ part, cases, checks, violations, notes }) => {
    const figures = [...notes].map(([name, value]) => `${name} ${value}`).join(', ');
    return [part, String(cases), String(checks), String(violations.length), figures];
  });
  const all = [['part', 'cases', 'checks', 'violations', 'measured'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const found = tallies.flatMap(({ part, violations }) => violations.slice(0, 20).map((line) => `${part}: ${line}`));
  return [...lines, ...found.map((line) => `VIOLATION  ${line}`)].join('\n');
}
