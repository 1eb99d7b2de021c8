import type { en } from './en'

export const de: typeof en = {
  search: 'Suche',
  searchEverything: 'Nachrichten, Räume, Agenten und Dateien durchsuchen',
  whereToLook: 'Wo gesucht wird',
  everything: 'Alles',
  messages: 'Nachrichten',
  rooms: 'Räume',
  agents: 'Agenten',
  files: 'Dateien',
  couldNotSearch: 'Die Suche ist fehlgeschlagen',
  typeWords: 'Tippe Wörter, um Nachrichten in allen Räumen zu finden.',
  noResults: 'Keine Ergebnisse',
  results: 'Ergebnisse',
  loadMore: 'Mehr laden',
  searchFor: (words: string) => `Alles nach „${words}“ durchsuchen`,
}
