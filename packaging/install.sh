#!/bin/sh
# packaging/install.sh add PREFIX DESTDIR VERSION ABI    copies what `make` has built to DESTDIR/PREFIX
# packaging/install.sh remove PREFIX DESTDIR             removes what `add` has put there, and nothing else
#
# `add` writes each file and each folder that it makes into PREFIX/share/finespun/manifest, without DESTDIR; `remove` reads it.
# A folder that was there before is not in the list, and one that holds something else stays. Over an older installation `add`
# first removes what that one has put there.
set -eu
cd "$(dirname "$0")/.."

say() { echo "install: $*" >&2; }
refuse() { say "$*"; exit 1; }

what=$1 prefix=${2%/} destination=${3%/}
case $prefix in
/*) ;;
*) refuse "PREFIX=$prefix: expected a path from /" ;;
esac
manifest=$prefix/share/finespun/manifest

# Files first, then the folders, the deepest first: a folder is listed after the one that it lies in.
remove() {
    list=$(mktemp)
    sort -r "$destination$manifest" >"$list"
    while read -r kind path; do
        case $path in
        *..* | [!/]*) refuse "$destination$manifest: $path is not a path that was installed" ;;
        esac
        case $kind in
        file) rm -f "$destination$path" ;;
        folder) ;;
        *) refuse "$destination$manifest: $kind is not in the form of this version" ;;
        esac
    done <"$list"
    rm -f "$destination$manifest"
    sed -n 's/^folder //p' "$list" | while read -r path; do
        rmdir "$destination$path" 2>/dev/null || true # something of others is in it
    done
    rm -f "$list"
}

# Makes a folder, and those above it, below DESTDIR.
folder() {
    [ -d "$destination$1" ] && return
    case $1 in
    */*) folder "${1%/*}" ;;
    esac
    mkdir -p "$destination$1"
    made="$made${1:+folder $1
}"
}

# put MODE FOLDER FILES
put() {
    mode=$1 into=$prefix/$2
    shift 2
    folder "$into"
    for file; do
        install -m "$mode" "$file" "$destination$into/"
        made="${made}file $into/${file##*/}
"
    done
}

# link FOLDER NAME TARGET
link() {
    ln -sf "$3" "$destination$prefix/$1/$2"
    made="${made}file $prefix/$1/$2
"
}

add() {
    version=$1 abi=$2
    made=''
    # What was copied before an error is in the list, too.
    trap 'write_manifest' EXIT
    put 755 bin build/bin/finespun build/bin/fspcc
    link bin fspc++ fspcc
    library=$(mktemp -d)
    cp build/lib/libfinespun.so "$library/libfinespun.so.$version"
    put 755 lib "$library/libfinespun.so.$version"
    rm -rf "$library"
    link lib "libfinespun.so.$abi" "libfinespun.so.$version"
    link lib libfinespun.so "libfinespun.so.$abi"
    put 644 lib build/lib/libfinespun.a build/lib/libfinespun_tmk.a
    for tree in lib/finespun lib/pkgconfig lib/cmake share; do
        for path in $(cd "build/$tree" && find . -type f | sort); do
            into=$tree/${path#./}
            put 644 "${into%/*}" "build/$into"
        done
    done
    put 644 include/finespun include/finespun/*.h
    put 644 include/finespun/compat include/finespun/compat/*.h
    put 755 libexec/finespun build/libexec/finespun/micro build/libexec/finespun/floors
    put 755 libexec/finespun/native build/libexec/finespun/native/*
    put 755 libexec/finespun/apps build/libexec/finespun/apps/*
}

write_manifest() {
    folder "${manifest%/*}"
    printf '%s' "$made" >"$destination$manifest"
}

case $what in
add)
    [ -z "$destination" ] || mkdir -p "$destination"
    [ ! -f "$destination$manifest" ] || remove
    add "$4" "$5"
    ;;
remove)
    [ -f "$destination$manifest" ] || refuse "nothing of Finespun is installed below $destination$prefix: $manifest is not there"
    remove
    ;;
*) refuse "expected add or remove, not $what" ;;
esac
