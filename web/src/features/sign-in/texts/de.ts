import type { en } from './en'

export const de: typeof en = {
  token: 'Token',
  toCreateOneRunGreenroomTokenCreate: 'Führe `greenroom token create --user local` auf dem Rechner aus, auf dem der Server läuft, um einen zu erstellen.',
  signingIn: 'Anmeldung läuft…',
  signIn: 'Anmelden',
  thisServerDoesNotKnowThatToken: 'Dieser Server kennt den Token nicht. Vielleicht wurde er widerrufen, oder am Anfang oder Ende fehlt etwas.',
  signInAgain: 'Erneut anmelden',
  youveBeenSignedOutWhatYouTyped: 'Du wurdest abgemeldet. Deine Eingaben sind noch da.',
  openTheLinkThatGreenroomServePrinted: 'Öffne den Link, den `greenroom serve` ausgegeben hat, oder führe `greenroom auth link` aus; komm danach auf diese Seite zurück.',
  openTheLinkThatGreenroomServePrintedSentence: 'Öffne den Link, den `greenroom serve` ausgegeben hat, oder führe `greenroom auth link` für einen neuen aus. Oder füge einen Token ein.',
  signingInTitle: 'Anmeldung läuft',
  thisLinkWasUsedBeforeOrHas: 'Dieser Link wurde schon benutzt oder ist abgelaufen. Führe `greenroom auth link` auf dem Rechner des Servers für einen neuen aus, oder füge einen Token ein.',
  theLinkDidNotSignYouIn: (error: string) => `Der Link hat dich nicht angemeldet. ${error}`,
  tryAgain: 'Erneut versuchen',
}
