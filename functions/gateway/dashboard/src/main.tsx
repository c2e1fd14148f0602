import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './styles/tokens.css';
import './styles/base.css';
import { queryClient } from './app/queryClient';
import { router } from './app/router';
import { Session } from './app/Session';
import { startTheme } from './app/theme';

startTheme();

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <Session>
          <RouterProvider router={router} />
        </Session>
      </QueryClientProvider>
    </StrictMode>,
  );
}
