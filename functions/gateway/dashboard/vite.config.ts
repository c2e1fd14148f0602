import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The gateway of `npm run dev`.
const gateway = process.env['JOBWEAVER_URL'] ?? 'http://localhost:8080';

// The gateway refuses requests of other origins, so the proxy sets the gateway's own.
const proxied = { target: gateway, changeOrigin: true, headers: { origin: gateway } };

export default defineConfig({
  plugins: [react()],
  base: './', // the gateway puts the path of its PUBLIC_URL into the document
  build: {
    target: ['chrome125', 'firefox128', 'safari17.5'],
    assetsInlineLimit: 0, // the Content-Security-Policy allows no data: URLs
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { proxy: { '/api': proxied, '/events': proxied } },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
});
