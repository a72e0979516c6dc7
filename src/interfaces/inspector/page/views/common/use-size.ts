// The size of an element, and drags on it.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** @param assumed the size until the browser reports it; without one, the element is measured before it is drawn */
export function useSize(assumed?: number) {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: assumed ?? 0, height: assumed ?? 0 });
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    const measure = (): void => setSize({ width: current.clientWidth, height: current.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(current);
    if (assumed === undefined) measure();
    return () => watch.disconnect();
  }, []);
  return { box, ...size };
}

/** Follows a pressed pointer until it is released. */
export function followPointer(
  { currentTarget, pointerId }: PointerEvent & { readonly currentTarget: HTMLElement },
  onMove: (moved: PointerEvent) => void,
  onEnd: () => void = () => undefined,
): void {
  const end = (): void => {
    currentTarget.removeEventListener('pointermove', onMove);
    onEnd();
  };
  currentTarget.setPointerCapture(pointerId);
  currentTarget.addEventListener('pointermove', onMove);
  currentTarget.addEventListener('pointerup', end, { once: true });
  currentTarget.addEventListener('pointercancel', end, { once: true });
}
