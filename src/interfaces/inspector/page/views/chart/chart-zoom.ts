// The zoom of the chart, as a factor of the fitting size, and its offset.

import { signal } from '@preact/signals';

export interface Zoom {
  readonly factor: number;
  readonly x: number;
  readonly y: number;
}
const FITTED_ZOOM: Zoom = { factor: 1, x: 0, y: 0 };
const STEP = 1.25;

export const zoomState = signal<Zoom>(FITTED_ZOOM);

export function applyZoomKey(key: string): void {
  if (key === '0') zoomState.value = FITTED_ZOOM;
  else zoomBy(key === '-' ? 1 / STEP : STEP);
}

/** Zooms about a point, relative to the middle of the chart. */
export function zoomBy(times: number, px = 0, py = 0): void {
  const { factor, x, y } = zoomState.value;
  const next = Math.min(8, Math.max(0.25, factor * times));
  const grown = next / factor;
  zoomState.value = { factor: next, x: px - (px - x) * grown, y: py - (py - y) * grown };
}

export function panBy(dx: number, dy: number): void {
  const { factor, x, y } = zoomState.value;
  zoomState.value = { factor, x: x + dx, y: y + dy };
}
