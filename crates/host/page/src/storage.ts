// What the browser keeps: drafts, the theme, and whether notifications are wanted. A browser that keeps nothing is no error.

export function stored (key: string): string | null {
  try {
    return localStorage.getItem(`whimbrel:${key}`)
  } catch {
    return null
  }
}

export function store (key: string, value: string | null) {
  try {
    if (value === null || value === '') localStorage.removeItem(`whimbrel:${key}`)
    else localStorage.setItem(`whimbrel:${key}`, value)
  } catch {
    // A full or forbidden storage loses drafts only.
  }
}

export type Theme = 'system' | 'light' | 'dark'

export function theme (): Theme {
  const value = stored('theme')
  return value === 'light' || value === 'dark' ? value : 'system'
}

export function applyTheme (value: Theme = theme()) {
  store('theme', value === 'system' ? null : value)
  if (value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = value
}

export function newKey (): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}
