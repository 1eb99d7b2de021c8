import type { ReactNode } from 'react'
import { resultText } from '../model/tool-input'
import { splitPictures } from '../model/tool-pictures'
import { OutputText } from './output-text'
import { t } from '../texts'
import styles from './tool-card.module.css'

/** What a tool returned: pictures as pictures, the rest as text. */
export function ResultView({ content, isError }: { content: unknown; isError: boolean }): ReactNode {
  const { pictures, rest } = splitPictures(content)
  return (
    <>
      {rest !== null && <OutputText label={isError ? t.error : t.result} text={resultText(rest)} isError={isError} />}
      {pictures.map((address, index) => (
        <img key={index} src={address} alt={t.fromTheToolOf(index + 1, pictures.length)} className={styles.picture} />
      ))}
    </>
  )
}
