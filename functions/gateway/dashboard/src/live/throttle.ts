/** throttle runs a function at once, and then at most once in ms milliseconds; the last call is never lost. */
export function throttle(ms: number, run: () => void): { call: () => void; stop: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let again = false;

  const fire = () => {
    again = false;
    run();
    timer = setTimeout(() => {
      timer = undefined;
      if (again) {
        fire();
      }
    }, ms);
  };

  return {
    call: () => {
      if (timer === undefined) {
        fire();
      } else {
        again = true;
      }
    },
    stop: () => {
      clearTimeout(timer);
      timer = undefined;
      again = false;
    },
  };
}
