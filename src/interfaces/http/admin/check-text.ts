import type { ReadinessResult } from '../../../host/readiness/readiness-reporter.js';

const lineOf = ({ name, reason }: ReadinessResult): string =>
  reason === null ? `[+]${name} ok\n` : `[-]${name} failed: ${reason}\n`;

export const passedText = (route: string, checks: readonly ReadinessResult[]): string =>
  `${checks.map(lineOf).join('')}${route} check passed\n`;

export const failedText = (route: string, checks: readonly ReadinessResult[]): string =>
  `${checks.map(lineOf).join('')}${route} check failed\n`;
